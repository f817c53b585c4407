// SPDX-License-Identifier: GPL-2.0-only
/* Other processes of a scenario, one step at a time, so that the book of each is right. */
#ifndef TRUTH_CHILD_H
#define TRUTH_CHILD_H

#include "scenario.h"

#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>

class Child
{
      public:
	/* True in the child. Both sides settle their books. */
	bool fork();
	/* Lets the other side go on. */
	void pass();
	/* Until the other side passes. */
	void await();
	/* In the child: says its book, passes, and holds what it has for good. */
	[[noreturn]] void hold();
	/* In the parent: until the child has ended. */
	void join();
	pid_t pid = 0;

      private:
	int in = -1, out = -1;
};

#endif
