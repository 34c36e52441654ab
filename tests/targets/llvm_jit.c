/*
 * llvm_jit MS: LLVM's just-in-time compiler (MCJIT), which registers its code by GDB's JIT interface. `heavy` runs
 * three times as long as `light`; `run_jit` calls both. The code has no frame pointers, and lines of a file made.c.
 *
 * LLVM is opened when it runs, and declared here: neither its headers nor the library are needed to build this. Exits
 * with 77 if it is not installed. Source: llvm-c/Core.h, ExecutionEngine.h, IRReader.h, Target.h of LLVM 14.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "work.h"

#if defined(__x86_64__)
#define TARGET "X86"
#else
#define TARGET "AArch64"
#endif

/* A loop of %n rounds, in two functions that differ in their lines. */
#define LOOP(name, scope, line, inner)                                                                                 \
	"define i64 @" name "(i64 %n) #0 !dbg !" scope " {\n"                                                          \
	"entry:\n  br label %loop, !dbg !" inner "\n"                                                                  \
	"loop:\n"                                                                                                      \
	"  %i = phi i64 [ 0, %entry ], [ %i2, %loop ], !dbg !" inner "\n"                                              \
	"  %s = phi i64 [ 1, %entry ], [ %s2, %loop ], !dbg !" inner "\n"                                              \
	"  %m = mul i64 %s, 6364136223846793005, !dbg !" inner "\n"                                                    \
	"  %s2 = xor i64 %m, %i, !dbg !" inner "\n"                                                                    \
	"  %i2 = add i64 %i, 1, !dbg !" inner "\n"                                                                     \
	"  %c = icmp ult i64 %i2, %n, !dbg !" inner "\n"                                                               \
	"  br i1 %c, label %loop, label %exit, !dbg !" inner "\n"                                                      \
	"exit:\n  ret i64 %s2, !dbg !" inner "\n}\n"

static const char code[] = LOOP("heavy", "4", "10", "7")
	LOOP("light", "5", "20",
	     "8") "define i64 @run_jit(i64 %n) #0 !dbg !6 {\n"
		  "  %n3 = mul i64 %n, 3, !dbg !9\n"
		  "  %a = call i64 @heavy(i64 %n3), !dbg !9\n"
		  "  %b = call i64 @light(i64 %n), !dbg !10\n"
		  "  %r = xor i64 %a, %b, !dbg !10\n"
		  "  ret i64 %r, !dbg !10\n}\n"
		  "attributes #0 = { noinline \"frame-pointer\"=\"none\" uwtable }\n"
		  "!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2, !3}\n"
		  "!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, isOptimized: true, emissionKind: "
		  "FullDebug)\n"
		  "!1 = !DIFile(filename: \"made.c\", directory: \"/made\")\n"
		  "!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n"
		  "!3 = !{i32 2, !\"Dwarf Version\", i32 4}\n"
		  "!4 = distinct !DISubprogram(name: \"heavy\", file: !1, line: 10, type: !11, unit: !0, spFlags: "
		  "DISPFlagDefinition)\n"
		  "!5 = distinct !DISubprogram(name: \"light\", file: !1, line: 20, type: !11, unit: !0, spFlags: "
		  "DISPFlagDefinition)\n"
		  "!6 = distinct !DISubprogram(name: \"run_jit\", file: !1, line: 30, type: !11, unit: !0, spFlags: "
		  "DISPFlagDefinition)\n"
		  "!7 = !DILocation(line: 12, scope: !4)\n!8 = !DILocation(line: 22, scope: !5)\n"
		  "!9 = !DILocation(line: 31, scope: !6)\n!10 = !DILocation(line: 32, scope: !6)\n"
		  "!11 = !DISubroutineType(types: !12)\n!12 = !{null}\n";

static void *llvm;

static void *find(const char *name)
{
	void *function = dlsym(llvm, name);

	if (!function) {
		printf("LLVM has no %s\n", name);
		exit(1);
	}
	return function;
}

static void call(const char *name)
{
	((void (*)(void))find(name))();
}

static uint64_t (*compile(void))(uint64_t)
{
	void *context = ((void *(*)(void))find("LLVMContextCreate"))(), *text, *module, *engine;
	void *(*copy)(const char *, size_t, const char *) = find("LLVMCreateMemoryBufferWithMemoryRangeCopy");
	int (*parse)(void *, void *, void **, char **) = find("LLVMParseIRInContext");
	int (*create)(void **, void *, void *, size_t, char **) = find("LLVMCreateMCJITCompilerForModule");
	void (*defaults)(void *, size_t) = find("LLVMInitializeMCJITCompilerOptions");
	uint64_t (*address)(void *, const char *) = find("LLVMGetFunctionAddress");
	/* struct LLVMMCJITCompilerOptions: level of optimisation first. */
	uint64_t options[3] = {0};
	char *why = "";

	text = copy(code, strlen(code), "code");
	if (parse(context, text, &module, &why)) {
		puts(why);
		exit(1);
	}
	defaults(options, sizeof(options));
	if (create(&engine, module, options, sizeof(options), &why)) {
		puts(why);
		exit(1);
	}
	return (uint64_t(*)(uint64_t))address(engine, "run_jit");
}

int main(int argc, char **argv)
{
	clock_t end = (clock_t)arg_num(argc, argv, 1, 1000) * (CLOCKS_PER_SEC / 1000);
	uint64_t (*run)(uint64_t), sum = 0;

	llvm = dlopen("libLLVM-14.so.1", RTLD_NOW);
	if (!llvm)
		return 77;
	call("LLVMLinkInMCJIT");
	call("LLVMInitialize" TARGET "TargetInfo");
	call("LLVMInitialize" TARGET "Target");
	call("LLVMInitialize" TARGET "TargetMC");
	call("LLVMInitialize" TARGET "AsmPrinter");
	run = compile();
	for (end += clock(); clock() < end;)
		sum ^= run(100000);
	puts("done");
	return sum == 1;
}
