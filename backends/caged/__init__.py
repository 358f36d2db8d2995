"""Native code of others in a process that can do nothing but compute: no files, no system calls of use, no
memory of who judges it."""
