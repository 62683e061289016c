# Each target is one call of ./run, which sets everything up.
.PHONY: demo test lint bench fuzz

demo test lint bench fuzz:
	@./run $@
