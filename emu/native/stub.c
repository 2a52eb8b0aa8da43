int wp_abi_version(void); int wp_abi_version(void){return 1;}
