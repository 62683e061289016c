"""M3 for the programs that read it: DBToaster's interpreter, DBToaster's and F-IVM's compilers to C++."""
