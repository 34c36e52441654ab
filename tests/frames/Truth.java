// As truth.py, for Java: before each page fault that it causes on purpose, it writes down its own stack.
// MALLOC_MMAP_THRESHOLD_=65536 in its environment makes all memory of zlib new.
//
// usage: java -XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames -cp DIRECTORY Truth FILE [ROUNDS]
// Writes the stacks, JSON: [[function, file, line], innermost first]. ROUNDS: how often everything is done; by more of
// them, more of it is compiled, and inlined.
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.Deflater;

public class Truth {
	static final List<StackTraceElement[]> stacks = Collections.synchronizedList(new ArrayList<>());

	static void note() {
		StackTraceElement[] all = new Throwable().getStackTrace();

		stacks.add(Arrays.copyOfRange(all, 1, all.length));
	}

	/* Memory of zlib, which it clears in a native method: at a call, HotSpot knows where it is. */
	static int here() { note(); new Deflater().end(); return 1; }

	static int recurse(int n) {
		return n == 0 ? here() : 1 + recurse(n - 1);
	}

	static int even(int n) { return n == 0 ? here() : odd(n - 1); }
	static int odd(int n) { return n == 0 ? here() : even(n - 1); }

	interface Shape {
		int area();

		default int twice() {
			return area() + area();
		}
	}

	static class Square implements Shape {
		private final int side;

		Square(int side) { this.side = side; }
		public int area() {
			return here() * side;
		}
	}

	static class Circle implements Shape {
		public int area() { return here() * 3; }
	}

	static final class Triangle extends Circle {
		@Override
		public int area() {
			return super.area() / 2 + here();
		}
	}

	enum Operation {
		ADD {
			int apply(int a) { return a + here(); }
		},
		NEGATE {
			int apply(int a) { return here() - a; }
		};

		abstract int apply(int a);
	}

	class Inner {
		final int value;

		Inner() {
			value = here();
		}

		int get() { return value + here(); }
	}

	static class Lazy {
		static final int MADE = here();
	}

	static synchronized int locked() { return here(); }

	int member() { synchronized (this) { return here(); } }

	static int small(int n) { return smaller(n) + 1; }
	static int smaller(int n) { return smallest(n) + 2; }
	static int smallest(int n) {
		int sum = 0;
		for (int i = 0; i < 200; i++)
			sum += i ^ n;
		return sum + here();
	}

	static <T extends Comparable<T>> int generic(T a, T b) {
		return a.compareTo(b) + here();
	}

	static int thrower(int n) {
		if (n == 0)
			throw new IllegalStateException("x");
		try {
			return thrower(n - 1);
		} finally {
			here();
		}
	}

	static int throwing(int n) {
		try {
			return thrower(n);
		} catch (IllegalStateException e) {
			return here();
		}
	}

	static int nulls(Object o) {
		try {
			return o.hashCode();
		} catch (NullPointerException e) {
			return here();
		}
	}

	static int switches(Object o) {
		if (o instanceof String && ((String) o).length() > 2)
			return here();
		switch (o.hashCode() & 1) {
			case 0: return here();
			default: here(); return 2;
		}
	}

	public static int reflected(int n) {
		return here() + n;
	}

	static int loops(int n) {
		int sum = 0;
		for (int i = 0; i < n; i++) {
			sum += i * 31;
			if (i % 20000 == 19999)
				sum += here();
		}
		return sum;
	}

	static int callbacks() {
		Integer[] numbers = {5, 3, 9, 1};
		Arrays.sort(numbers, (a, b) -> { here(); return Integer.compare(a, b); });
		List<Integer> list = new ArrayList<>(List.of(1, 2, 3));
		list.forEach(x -> here());
		list.removeIf(x -> here() > 1);
		new TreeMap<Integer, Integer>((a, b) -> a - b + 0 * here()).put(1, 1);
		Map<String, Integer> map = new HashMap<>();
		map.computeIfAbsent("a", key -> here());
		map.merge("a", 1, (a, b) -> a + b + here());
		Supplier<Integer> method = Truth::here;
		IntSupplier other = new IntSupplier() {
			public int getAsInt() { return here(); }
		};
		return method.get() + other.getAsInt();
	}

	static int streams() {
		return IntStream.range(0, 6).filter(i -> i % 2 == 0 && here() > 0).mapToObj(i -> "s" + i)
			.collect(Collectors.groupingBy(s -> s.length() + here())).size() +
			IntStream.range(0, 3).map(i -> here()).sum();
	}

	static final InvocationHandler HANDLER = (proxy, method, arguments) -> here();

	static int handles(MethodHandle handle) {
		try {
			return (int) handle.invokeExact(1) + (int) handle.invoke(2) +
				(int) MethodHandles.insertArguments(handle, 0, 3).invoke();
		} catch (Throwable t) {
			throw new RuntimeException(t);
		}
	}

	static class Task extends RecursiveTask<Integer> {
		final int n;

		Task(int n) {
			this.n = n;
		}

		protected Integer compute() {
			if (n < 2)
				return here();
			Task left = new Task(n - 1);
			left.fork();
			return new Task(n - 2).compute() + left.join();
		}
	}

	static int concat(int n) {
		String text = "a" + n + new Object() { public String toString() { here(); return "b"; } } + 1.5;
		return text.length();
	}

	static void everything(int round) throws Throwable {
		for (int n = 0; n < 12; n++) {
			recurse(n);
			even(n);
		}
		for (Shape shape : new Shape[] {new Square(2), new Circle(), new Triangle()}) {
			shape.area();
			shape.twice();
		}
		for (Operation operation : Operation.values())
			operation.apply(round);
		Truth truth = new Truth();
		truth.new Inner().get();
		int made = Lazy.MADE + locked() + truth.member() + small(round) + generic("a", "b") + loops(40000);
		throwing(3);
		nulls(round < 0 ? "" : null);
		switches("text");
		switches(round);
		concat(round);
		callbacks();
		streams();
		Method method = Truth.class.getMethod("reflected", int.class);
		method.invoke(null, 1);
		((Supplier<?>) Proxy.newProxyInstance(Truth.class.getClassLoader(), new Class<?>[] {Supplier.class}, HANDLER)).get();
		handles(MethodHandles.lookup().findStatic(Truth.class, "reflected", MethodType.methodType(int.class, int.class)));
		if (round % 50 == 0)
			threads();
		if (made == 1 << 30)
			System.out.println(made);
	}

	static void threads() throws Throwable {
		Thread thread = new Thread(() -> { recurse(3); callbacks(); }, "other");
		thread.start();
		thread.join();
		new ForkJoinPool(2).invoke(new Task(4));
		try {
			Thread virtual = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
				.invoke(null, (Runnable) Truth::inVirtual);
			virtual.join();
		} catch (NoSuchMethodException e) {
			/* before JDK 21 */
		}
	}

	static void inVirtual() {
		recurse(2);
		try {
			Thread.sleep(1);
		} catch (InterruptedException e) {
			return;
		}
		recurse(4);
		Thread.yield();
		callbacks();
	}

	static String quoted(String text) {
		StringBuilder out = new StringBuilder("\"");
		for (char c : text.toCharArray())
			out.append(c == '"' || c == '\\' || c < 32 || c > 126 ? String.format("\\u%04x", (int) c) : String.valueOf(c));
		return out.append('"').toString();
	}

	static String folded(String name) {
		return name.replaceAll("\\$\\$Lambda.*", "\\$\\$Lambda").replaceAll("[+/]0x.*", "");
	}

	/* The path that a profile has: the package, and the name of the source. */
	static String file(StackTraceElement element) {
		String name = element.getClassName();

		if (element.getFileName() == null)
			return "[jvm]";
		/* A hidden class's suffix may have been written with a dot. */
		int end = name.replaceAll("[+/.]0x.*", "").lastIndexOf('.');
		return name.substring(0, end + 1).replace('.', '/') + element.getFileName();
	}

	static void write(String path) throws IOException {
		try (PrintWriter out = new PrintWriter(path)) {
			String before = "[";
			for (StackTraceElement[] stack : stacks) {
				out.print(before);
				before = ",\n";
				out.print(Arrays.stream(stack)
					.map(e -> "[" + quoted(folded(e.getClassName()) + "." + e.getMethodName()) + "," + quoted(file(e)) + "," +
						Math.max(0, e.getLineNumber()) + "]").collect(Collectors.joining(",", "[", "]")));
			}
			out.println("]");
		}
	}

	public static void main(String[] arguments) throws Throwable {
		for (int round = 0; round < (arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1); round++)
			everything(round);
		write(arguments[0]);
	}
}
