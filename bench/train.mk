# The training benchmark: `make train`, or `make train TRAIN_ARGS='--task plain --seeds 1'`. Included by the top Makefile,
# which defines CC, CFLAGS, WARNINGS and BUILD.

TRAIN_ARGS ?=

.PHONY: train
train: $(BUILD)/train/train ## a small language model in fp32, fp16, bf16, fp8: does it train? TRAIN_ARGS=--help
	@$(BUILD)/train/train --out $(BUILD)/train $(TRAIN_ARGS)

$(BUILD)/train/train: bench/train.c bench/train_report.c bench/train.h bench/host.h bench/train.mk mixprec.h
	@mkdir -p $(BUILD)/train
	$(CC) -std=c99 $(WARNINGS) $(CFLAGS) -pthread -o $@ bench/train.c bench/train_report.c -lm
