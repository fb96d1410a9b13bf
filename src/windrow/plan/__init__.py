"""What will be done: the plan, a frozen value, and the pure functions that make one."""
