# Each target is one call of ./run, which sets everything up.
.PHONY: demo test lint bench fuzz planner

demo test lint bench fuzz planner:
	@./run $@
