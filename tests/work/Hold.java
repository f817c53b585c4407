/* SPDX-License-Identifier: GPL-2.0-only
 * Arrays on the heap of a JVM: java Hold.java MIB. Protocol as the other workloads. */
public class Hold {
	public static void main(String[] args) throws Exception {
		byte[][] keep = new byte[Integer.parseInt(args[0])][];

		for (int i = 0; i < keep.length; i++) {
			keep[i] = new byte[1 << 20];
			java.util.Arrays.fill(keep[i], (byte)1);
		}
		System.out.println("ready " + ProcessHandle.current().pid());
		System.in.read();
		System.out.println("{\"heap\":" + ((long)keep.length << 20) + "}\ndone");
		System.in.read();
		while (System.in.read() >= 0)
			;
		System.exit(keep[0][0]);
	}
}
