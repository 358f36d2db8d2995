"""Result files of several runs made one."""
