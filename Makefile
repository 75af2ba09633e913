# make serve, make test: everything else is in scripts/, each of which can be run by itself.
.DEFAULT_GOAL := serve
.PHONY: serve build setup test test-all bench format lint install uninstall clean help

DESTDIR ?=
prefix ?= /usr/local
MODEL ?=
ARGS ?=

serve:
	@scripts/build --target onebit
	@exec build/bin/1bit serve $(MODEL) $(ARGS)

build:
	@scripts/build

setup:
	@scripts/install-packages build test lint
	@scripts/fetch-llama >/dev/null
	@scripts/fetch-shader-tools >/dev/null
	@scripts/test-setup >/dev/null

test:
	@scripts/test

test-all:
	@scripts/test --all

bench: build
	@build/bin/1bit bench $(or $(MODEL),builtin) $(ARGS)

format:
	@scripts/lint --fix

lint:
	@scripts/lint --tidy

install:
	@DESTDIR="$(DESTDIR)" scripts/install --prefix "$(prefix)"

uninstall:
	@DESTDIR="$(DESTDIR)" scripts/install --uninstall

clean:
	@rm -rf build build-address build-thread
	@echo "removed the build folders; the cache is kept: rm -r ~/.cache/1bit removes it too"

help:
	@echo "make serve [MODEL=...] [ARGS=...]  build and serve the built-in model on 127.0.0.1:8080"
	@echo "make build                         install what is missing, fetch the sources, build all, the tests too"
	@echo "make setup                         only install and fetch"
	@echo "make test                          build and run what CI runs"
	@echo "make test-all                      every test; the log is build/test-all.log"
	@echo "make bench [MODEL=...]             prefill and decode on each device"
	@echo "make format | lint                 lay out our files | check them"
	@echo "make install [prefix=/usr/local] [DESTDIR=]   install the program; make uninstall removes it"
	@echo "make clean                         remove the build folders"
