"""Runs untrusted native code in a process that can only compute: no files, no useful system calls,
and no memory of the judging process."""
