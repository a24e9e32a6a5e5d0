# `make` prints the targets. `make demo` and `make test` set up .venv by themselves; they need Python 3.11, Java 17 and make.

SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PEER := .venv-peer
CANARY := .venv-canary
DIST := .venv-dist
DOCS := .venv-docs
CLUSTER := build/cluster
# The versions of Spark that are tested besides the one of .venv: `make spark41` runs PYSPARK_41 in .venv-spark41.
SPARKS := 41 42 421
PYSPARK_41 := 4.1.4
PYSPARK_42 := 4.2.0
PYSPARK_421 := 4.2.1
# A wheel has a jar for each of these.
JARS_OF := $(PYSPARK_41) $(PYSPARK_42) $(shell sed -n 's/^pyspark==//p' constraints.txt)
# What `make pythons` tries: versions of Python, and the tests that run on each of them.
PYTHONS := 3.11 3.12 3.13 3.14
PYTHONS_TESTS := tests/unit tests/property/values/test_conform.py tests/property/log/test_actions.py tests/spark/reads/test_read.py
# K=expression narrows every test target to the tests whose names match (pytest -k).
K ?=
# SEED=number is the seed of all random tests, SAMPLE=number the slice of the sampled cases; a run's header names both.
SEED ?=
SAMPLE ?=
N ?=
FUZZ ?=
KILLS ?=
SCHEDULES ?=
CROSSES ?=
CROSS ?=
ROUNDS ?=
BENCH ?=
PICTURES ?=
ALL ?=

PYTEST = -m pytest --timeout=600 $(if $(SEED),--hypothesis-seed=$(SEED)) $(if $(K),-k "$(K)")
# The tests of a file stay together, in one of three processes, each with a Spark session: while one waits, the others keep two cores
# busy. Slow files go first.
TOGETHER = $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder
export PYDELTA_SEED = $(SEED)
export PYDELTA_SAMPLE = $(SAMPLE)

# Spark starts its Python workers with `python3` from PATH unless told otherwise.
with_env = PATH="$(CURDIR)/$(1)/bin:$$PATH" PYSPARK_PYTHON="$(CURDIR)/$(1)/bin/python" \
	PYSPARK_DRIVER_PYTHON="$(CURDIR)/$(1)/bin/python" SPARK_LOCAL_IP=127.0.0.1 $(1)/bin/python
RUN = $(call with_env,$(VENV))
RUN_PEER = PYDELTA_PEER_JARS="$(CURDIR)/$(PEER)/jars" $(call with_env,$(PEER))

.PHONY: help setup demo check jar test unit acceptance spark $(SPARKS:%=spark%) $(SPARKS:%=connect%) capabilities canary cluster applications interop emulators storage faults fuzz \
	page nightly seconds bench all dist docs clean java peer pythons

help: ## this list
	@echo "make TARGET [K=name]"
	@awk -F ':.*## ' '/^[a-z0-9 ]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: jar ## make a Delta table of real data, read it, filter it, travel in its history
	@$(RUN) examples/demo.py

check: jar ## ruff, mypy (--strict but for tests), javac, the rules of the layers
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(RUN) $(PYTEST) -q tests/unit/repository/test_layers.py tests/unit/repository/test_protocol_headings.py

# javac compiles with every warning an error. Nothing is done where the jar is that of the sources.
jar: $(VENV)/.ready java ## the jar of the Java part, for the Spark of each environment that there is
	@for python in $(VENV)/bin/python $(PEER)/bin/python $(SPARKS:%=.venv-spark%/bin/python); do \
		test ! -x $$python || $$python -m spark_plugin.java.build || exit 1; done

test: jar ## unit, property, acceptance and Spark tests; ALL=1 takes every sampled case
	PYDELTA_ALL="$(ALL)" $(RUN) $(TOGETHER) tests/unit tests/property tests/acceptance tests/spark

seconds: jar ## make test, and note how long each file took (tests/support/runs/file_seconds.txt)
	PYDELTA_WRITE_SECONDS=1 $(RUN) $(TOGETHER) tests/unit tests/property tests/acceptance tests/spark

unit: jar ## unit and property tests only: no Spark
	$(RUN) $(PYTEST) tests/unit tests/property

acceptance: $(VENV)/.ready ## the tables of the Delta projects, read without Spark; ALL=1 takes each
	PYDELTA_ALL="$(ALL)" $(RUN) $(PYTEST) tests/acceptance

spark: jar ## Spark tests only; ALL=1 takes every table and every query shape in every setting
	PYDELTA_ALL="$(ALL)" $(RUN) $(PYTEST) tests/spark

spark41 spark42 spark421: spark%: .venv-spark%/.ready jar ## the Spark tests on another version of Spark: 4.1.4, 4.2.0, 4.2.1
	PYDELTA_ALL="$(ALL)" $(call with_env,.venv-spark$*) $(TOGETHER) tests/spark

connect41 connect42 connect421: connect%: .venv-spark%/.ready jar ## the tests of Spark Connect on another version of Spark
	PYDELTA_ALL="$(ALL)" $(call with_env,.venv-spark$*) $(PYTEST) tests/applications/connect

capabilities: $(VENV)/.ready $(SPARKS:%=.venv-spark%/.ready) java ## what docs/ say of each version of Spark, tried on each of them
	$(foreach venv,$(VENV) $(SPARKS:%=.venv-spark%),$(call with_env,$(venv)) $(PYTEST) tests/spark/session/test_spark_capabilities.py \
		tests/spark/queries/test_rule_odd_values.py &&) true

# Each Python is searched for on PATH, then among those of pyenv and uv.
pythons: java ## a fixed part of the tests on each Python from 3.11 to 3.14 that this machine has; K= narrows it
	@missing=; for version in $(PYTHONS); do \
		python=; for each in "$$(command -v python$$version)" "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python \
			"$${XDG_DATA_HOME:-$$HOME/.local/share}"/uv/python/cpython-$$version.*/bin/python; do \
			test "$$("$$each" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" != $$version || { python="$$each"; break; }; \
		done; \
		test -n "$$python" || { missing="$$missing $$version"; continue; }; \
		echo "== Python $$version: $$python"; \
		$(MAKE) --no-print-directory .venv-python$$version/.ready PYTHON="$$python" && \
		.venv-python$$version/bin/python -m spark_plugin.java.build && \
		$(call with_env,.venv-python$$version) $(PYTEST) -q -n 2 $(PYTHONS_TESTS) || exit 1; \
	done; test -z "$$missing" || echo "== NOT RUN, because they are not on this machine: Python$$missing"

canary: $(CANARY)/.ready jar ## the Spark tests on the newest Spark that the registry has, pre-releases too
	@$(CANARY)/bin/python -c "import pyspark; print('Spark', pyspark.__version__)"
	PYDELTA_ALL="$(ALL)" $(call with_env,$(CANARY)) $(TOGETHER) tests/spark

# Two workers of a core each, whose executors are processes of their own. The tests are copied to where the sources are not, so that
# driver and executors have what the wheel brings.
cluster: dist ## queries give the right rows on two workers, from the wheel, with each way of reading and planning on, and off
	rm -rf $(CLUSTER) && mkdir -p $(CLUSTER) && cp -r conftest.py pyproject.toml tests $(CLUSTER)
	"$(PYTHON)" -m venv $(CLUSTER)/.venv
	$(CLUSTER)/.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[dev]"
	cd $(CLUSTER) && for on in true false; do \
		PATH="$$PWD/.venv/bin:$$PATH" SPARK_LOCAL_IP=127.0.0.1 PYDELTA_MASTER="local-cluster[2,1,1024]" PYDELTA_ALL=1 \
		PYDELTA_NATIVE_READER=$$on PYDELTA_DRIVER_PLANNING=$$on \
		python $(PYTEST) tests/spark/queries/test_rule_correctness.py tests/spark/queries/test_rule_odd_values.py tests/spark/reads/test_acceptance.py || exit 1; \
	done

# CROSSES is how many drawn steps test_crosses.py takes, CROSS the seed of one table of it.
interop: $(PEER)/.ready $(PEER)/jars/.ready jar ## delta-spark and deltalake read our tables, we read theirs; SEED=, CROSSES= choose drawn steps
	PYDELTA_CROSSES="$(CROSSES)" PYDELTA_CROSS="$(CROSS)" $(RUN_PEER) $(PYTEST) tests/interop

applications: jar ## Spark applications of their own: Connect servers, two writers, settings of a whole application
	PYDELTA_ALL="$(ALL)" $(RUN) $(PYTEST) tests/applications

emulators: ## servers that speak the protocols of object stores, built once a version into ~/.cache/pydelta-emulators
	@"$(PYTHON)" -m tests.support.servers.emulator_programs

storage: emulators jar ## object stores, on emulators; SEED= and ROUNDS= choose lost replies, and how many
	PYDELTA_STORAGE_ROUNDS="$(ROUNDS)" $(RUN) $(PYTEST) tests/storage

# SCHEDULES is how many orders of a coordinated table's commits are simulated.
faults: jar ## failures injected into storage; SEED= and N= choose the schedules, KILLS= how often a Spark driver dies
	PYDELTA_FAULTS_N="$(N)" PYDELTA_FAULTS_KILLS="$(KILLS)" PYDELTA_SCHEDULES="$(SCHEDULES)" $(RUN) $(PYTEST) tests/faults

fuzz: $(VENV)/.ready ## damaged or hostile tables, streams, caches, options; SEED= and FUZZ= choose the cases, and how many of each kind
	PYDELTA_FUZZ_N="$(FUZZ)" $(RUN) $(PYTEST) -s tests/fuzz

# Without Chromium, and where it cannot be installed, the tests are skipped, and say so.
page: $(VENV)/.ready ## the report's page in Debian's Chromium, installed where it is missing; PICTURES=directory keeps pictures
	@command -v chromium > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || \
		{ apt-get update -q && apt-get install -q -y --no-install-recommends chromium; } || echo "Chromium could not be installed." >&2
	PYDELTA_PICTURES="$(PICTURES)" $(RUN) $(PYTEST) tests/page

bench: $(VENV)/.ready $(PEER)/.ready $(PEER)/jars/.ready emulators jar ## measure against deltalake, delta-spark and Spark's Parquet reader; BENCH="--quick"
	$(RUN) benchmarks/bench.py --peer $(PEER) $(BENCH)

# A link, an anchor or a name of the API that does not exist is an error. Nothing of the project is imported: the API is read from the text.
docs: $(DOCS)/.ready ## the documentation as a site with search and the API, in build/site
	$(DOCS)/bin/python -m mkdocs build --strict

all: check test applications interop storage faults fuzz page ## everything but the benchmarks

nightly: ## hours: every sampled case, new random seeds, all of interop and applications, killed drivers, each Spark, a cluster, the site
	$(MAKE) --keep-going all $(SPARKS:%=spark%) $(SPARKS:%=connect%) cluster docs ALL=1 SEED=$(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')) \
		N=$(or $(N),100) SCHEDULES=$(or $(SCHEDULES),1000000) KILLS=$(or $(KILLS),20) \
		FUZZ=$(or $(FUZZ),5000) CROSSES=$(or $(CROSSES),2000) ROUNDS=$(or $(ROUNDS),1000)

# The wheel is installed with the exact versions of constraints.txt into an environment that has nothing else, not even pip: what is
# found there is what it depends on.
# Wheel and sdist contain the jars of all versions of Spark. The sdist has the Java sources too.
# The zip file is the wheel by another name: spark-submit --py-files takes no wheel.
dist: $(DIST)/.ready $(JARS_OF:%=build/spark-jars/%/.ready) java ## wheel, zip, sdist, and an SBOM of what the wheel depends on (CycloneDX), in dist/
	for version in $(JARS_OF); do \
		$(DIST)/bin/python -m spark_plugin.java.build --force --spark-jars build/spark-jars/$$version || exit 1; done
	rm -rf dist build/lib build/bdist.* build/sbom  # setuptools takes what is left in build/lib into the wheel
	$(DIST)/bin/python -m build --no-isolation --outdir dist .
	cp "$$(ls dist/*.whl)" "$$(ls dist/*.whl | sed 's/-py3-none-any.whl/.zip/')"
	$(DIST)/bin/python tests/support/documents/dist_contents.py dist
	"$(PYTHON)" -m venv --without-pip build/sbom
	$(DIST)/bin/python -m pip --python build/sbom/bin/python install --quiet --disable-pip-version-check -c constraints.txt \
		"$$(ls dist/*.whl)[spark]"
	$(DIST)/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --short-PURLs --output-reproducible \
		--output-file "$$(ls dist/*.whl | sed 's/-py3-none-any.whl//').cdx.json" build/sbom/bin/python
	@ls dist

clean: ## remove the environments and what tools left behind
	rm -rf $(VENV) $(PEER) $(SPARKS:%=.venv-spark%) $(CANARY) $(DIST) $(DOCS) .venv-python* spark_plugin/jars build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

peer: $(PEER)/.ready jar ## the environment of the peers, with Spark 4.2: delta-spark and deltalake

setup: jar ## the environment .venv, made when pyproject.toml or constraints.txt change, and the jar of the Java part

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(call make_venv,$(VENV),constraints.txt,dev)

$(PEER)/.ready: pyproject.toml constraints-peer.txt
	@$(call make_venv,$(PEER),constraints-peer.txt,peer)

# The same packages as .venv, but for Spark.
$(SPARKS:%=.venv-spark%/.ready): .venv-spark%/.ready: pyproject.toml constraints.txt
	@mkdir -p build && sed 's/^pyspark==.*/pyspark==$(PYSPARK_$*)/' constraints.txt > build/constraints-spark$*.txt
	@$(call make_venv,.venv-spark$*,build/constraints-spark$*.txt,dev)

.venv-python%/.ready: pyproject.toml constraints.txt
	@$(call make_venv,.venv-python$*,constraints.txt,dev)

# javac needs the jars of a Spark and nothing else of it: they are in the sdist of its pyspark.
build/spark-jars/%/.ready: | $(DIST)/.ready
	rm -rf $(@D) && mkdir -p $(@D)
	$(DIST)/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --dest $(@D) pyspark==$*
	tar -xzf $(@D)/pyspark-*.tar.gz -C $(@D) --strip-components=3 --wildcards "*/deps/jars/*.jar" && rm $(@D)/pyspark-*.tar.gz
	@touch $@

$(DIST)/.ready: pyproject.toml constraints.txt
	@$(call make_venv,$(DIST),constraints.txt,dist)

$(DOCS)/.ready: constraints-docs.txt
	@echo "Setting up $(DOCS)" && { test -x $(DOCS)/bin/python || "$(PYTHON)" -m venv $(DOCS); }
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r constraints-docs.txt
	@touch $@

$(CANARY)/.ready: pyproject.toml constraints.txt
	@mkdir -p build && sed '/^pyspark==/d; /^py4j==/d' constraints.txt > build/constraints-canary.txt
	@$(call make_venv,$(CANARY),build/constraints-canary.txt,dev)
	$(CANARY)/bin/python -m pip install --quiet --disable-pip-version-check --pre --upgrade "pyspark[sql,connect]" \
		-c build/constraints-canary.txt

$(PEER)/jars/.ready: tests/support/peers/java/pom.xml | $(PEER)/.ready
	@command -v mvn >/dev/null || { echo "Maven (mvn) is needed to fetch delta-spark's jars." >&2; exit 1; }
	rm -rf $(PEER)/jars
	mvn -q -B -f tests/support/peers/java/pom.xml dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory="$(CURDIR)/$(PEER)/jars" -DexcludeGroupIds=org.apache.spark,org.scala-lang
	@touch $@

# $(1) directory, $(2) file of exact versions, $(3) extra of pyproject.toml
define make_venv
"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Python 3.11 or newer is needed (found: $(PYTHON)). Say which: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }; \
echo "Setting up $(1) (some minutes the first time)" && \
{ test -x $(1)/bin/python || "$(PYTHON)" -m venv $(1); } && \
$(1)/bin/python -m pip install --quiet --disable-pip-version-check -c $(2) -e ".[$(3)]" && \
touch $(1)/.ready
endef

java:
	@{ test -n "$$JAVA_HOME" && test -x "$$JAVA_HOME/bin/javac"; } || command -v javac >/dev/null || \
		{ echo "A JDK of Java 17 is needed: install it, or set JAVA_HOME." >&2; exit 1; }
