.PHONY: prove
prove: ## proves the scalar conversions for every input, with clang and z3
	@python3 -B tests/proofs/prove.py
