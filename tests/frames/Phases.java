// Phases named by a native library: loading() and parsing() run the same method in two threads, each in phases of its own.
//
// usage: Phases LIBRARY MS     each of the four phases takes so many ms of CPU time
public class Phases {
	static native void begin(String name);
	static native void end();

	static int loading(long ms) {
		begin("load");
		int sum = Jobs.spin(ms);
		end();
		return sum;
	}

	static int parsing(long ms) {
		begin("parse");
		begin("inner");
		int sum = Jobs.spin(ms);
		end();
		sum += Jobs.spin(ms);
		end();
		return sum;
	}

	static void inThread(long ms) {
		begin("beside");
		Jobs.spin(ms);
		end();
	}

	public static void main(String[] arguments) throws Exception {
		long ms = Long.parseLong(arguments[1]);
		Thread thread = new Thread(() -> inThread(ms));

		System.load(arguments[0]);
		begin("load"); // the virtual machine looks for the functions
		end();
		thread.start();
		int sum = loading(ms) + parsing(ms);
		thread.join();
		System.out.println(sum == 1 ? "" : "done");
	}
}
