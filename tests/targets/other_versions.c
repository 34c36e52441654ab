/*
 * An object with the symbols by which PHP, Perl, Ruby, V8 and HotSpot are recognised, of versions whose layouts are not
 * known. It is preloaded into a program, whose stacks must be the native ones.
 */
#define SHOWN __attribute__((visibility("default"), used))

SHOWN char executor_globals[1808];
SHOWN void *zend_execute_internal, *PL_curinterp;
SHOWN unsigned int PL_thr_key;
SHOWN const unsigned char PL_version = 38;
SHOWN const unsigned short PL_interp_size = 3768;
SHOWN int v8dbg_SmiTagMask = 1;
SHOWN void *gHotSpotVMStructs;
SHOWN const int ruby_api_version[3] = {3, 3, 0};

SHOWN void execute_ex(void)
{
}

SHOWN void Perl_runops_standard(void)
{
}

SHOWN void rb_vm_exec(void)
{
}
