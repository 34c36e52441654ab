/*
 * An agent that redefines a class again and again, which frees the methods that it had: others come to be where they were.
 *
 * usage: Redefines SECONDS     of CPU time, of all threads
 */
import com.sun.management.OperatingSystemMXBean;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.lang.management.ManagementFactory;

public class Redefines {
	static Instrumentation instrumentation;
	static volatile long sum;

	public static void premain(String arguments, Instrumentation given) {
		instrumentation = given;
	}

	static void callA() { Changing.a(); }
	static void callB() { Changing.b(); }
	static void callC() { Changing.c(); }
	static void callD() { Changing.d(); }

	public static void main(String[] args) throws Exception {
		byte[] bytes = Redefines.class.getResourceAsStream("Changing.class").readAllBytes();
		OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
		long end = system.getProcessCpuTime() + (long)(Double.parseDouble(args[0]) * 1e9);

		for (int i = 0; system.getProcessCpuTime() < end; i++) {
			callA();
			callB();
			callC();
			callD();
			instrumentation.redefineClasses(new ClassDefinition(Changing.class, bytes));
			if (i % 2 == 0)
				System.gc();
		}
		System.out.println("done");
	}
}

class Changing {
	static void spin() {
		long s = 0;

		for (int i = 0; i < 60000; i++)
			s += i * s;
		Redefines.sum += s;
	}

	static void a() { spin(); }
	static void b() { spin(); }
	static void c() { spin(); }
	static void d() { spin(); }
}
