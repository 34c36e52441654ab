/*
 * Names that an object defines if it is an interpreter. The agent, which reads frames of these, looks for them in what
 * is loaded; the launcher, which reads those of CPython only, in files (launcher/attach/interpreters.c). Of CPython and
 * PyPy: python_layout.c.
 */
#ifndef CSINK_INTERPRETER_SIGNS_H
#define CSINK_INTERPRETER_SIGNS_H

/* Functions */
#define CSINK_SIGN_PHP "execute_ex"
#define CSINK_SIGN_PERL "Perl_runops_standard"
#define CSINK_SIGN_V8 "_ZN2v87Isolate10GetCurrentEv" /* v8::Isolate::GetCurrent(), exported for add-ons */

/* Variables */
#define CSINK_SIGN_PHP_TOO "zend_execute_internal"
#define CSINK_SIGN_RUBY "ruby_api_version"
#define CSINK_SIGN_HOTSPOT "gHotSpotVMStructs"
#define CSINK_SIGN_V8_TOO "v8dbg_SmiTagMask"

#endif
