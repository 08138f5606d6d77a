# The only entry points. Everything a bare Debian 12 with cargo and gcc lacks is installed here.
PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
# Where PREFIX is the system's own, configuration and units go where the system looks for them.
SYSCONFDIR ?= /etc
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/usr/lib/systemd/system,$(PREFIX)/lib/systemd/system)
SUDO = $(if $(filter 0,$(shell id -u)),,sudo )
APT = $(SUDO)apt-get

.DEFAULT_GOAL := help
.PHONY: help run build dist dist-tools test test-browser test-agents test-clickhouse check deny fuzz schemathesis bench soak fleet oracle install install-conf deb deb-tools tarball sbom container test-packages cmake test-tools web-servers browser-tools bench-tools clients

help: ## Show what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: cmake ## Build quickly and start with conf/weirgate.toml
	$(CARGO) build --profile quick --locked
	./target/quick/weirgate serve

build: cmake ## Build the release binary: slower to build, faster to run
	$(CARGO) build --release --locked

# benches/dist.sh tells how.
DIST = target/dist
dist: $(DIST)/weirgate ## Build the binary that is installed: a release build, made and laid out for how calls run

$(DIST)/weirgate: $(shell find Cargo.toml Cargo.lock .cargo benches/dist.sh benches/loopback src filters conf -type f) | dist-tools
	CARGO=$(CARGO) benches/dist.sh $(DIST)

# Without them the binary is slower, and the script says so.
dist-tools: cmake
	@command -v llvm-bolt-19 llvm-bolt >/dev/null || { $(APT) update -qq && $(APT) install -y -qq bolt-19; } || true
	@ls "$$(rustc --print target-libdir)"/../bin/llvm-profdata >/dev/null 2>&1 || rustup component add llvm-tools || true

# Pingora compiles zlib-ng, which needs cmake.
cmake:
	@command -v cmake >/dev/null || { $(APT) update -qq && $(APT) install -y -qq cmake; }

# The suite starts the servers it needs itself, on loopback addresses of their own.
test-tools: cmake web-servers
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || { $(APT) update -qq && $(APT) install -y -qq postgresql; }
	@command -v redis-server >/dev/null || { $(APT) update -qq && $(APT) install -y -qq redis-server; }
	@command -v npm >/dev/null || { $(APT) update -qq && $(APT) install -y -qq nodejs npm; }
	@python3 -c 'import ensurepip' 2>/dev/null || { $(APT) update -qq && $(APT) install -y -qq python3-venv; }
	@command -v jq >/dev/null || { $(APT) update -qq && $(APT) install -y -qq jq; }
	@command -v promtool >/dev/null || { $(APT) update -qq && $(APT) install -y -qq prometheus; }

# The suite starts them itself. As services they neither run now nor start with the machine: one that is masked is not started
# when it is installed.
web-servers:
	@missing=; for name in nginx haproxy caddy; do command -v $$name >/dev/null || missing="$$missing $$name"; done; \
	[ -n "$$missing" ] || exit 0; \
	as_service() { [ ! -d /run/systemd/system ] || $(SUDO)systemctl --quiet "$$1" $$missing; }; \
	as_service mask; $(APT) update -qq && $(APT) install -y -qq $$(echo "$$missing" | sed 's/nginx/nginx-light/'); status=$$?; \
	as_service unmask; as_service disable; exit $$status

# What is built first is no time of the suite. Most tests wait, so three of them share two cores.
test: test-tools clients ## Run the whole suite
	$(CARGO) test --workspace --locked --no-run
	@began=$$(date +%s); export RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) + ($$(nproc) + 1) / 2))}; \
	$(CARGO) test --workspace --locked; status=$$?; took=$$(($$(date +%s) - began)); \
	echo "tests took $$((took / 60)) min $$((took % 60)) s"; exit $$status

# Screenshots are left in target/browser.
test-browser: test-tools browser-tools target/browser/.done ## Walk through the consent page and the console in Chromium
	$(CARGO) test --locked --test gateway browser:: -- --ignored

browser-tools:
	@command -v chromium >/dev/null || { $(APT) update -qq && $(APT) install -y -qq chromium fonts-dejavu-core; }

target/browser/.done: tests/browser/package.json tests/browser/package-lock.json
	@mkdir -p target/browser
	cp tests/browser/package.json tests/browser/package-lock.json target/browser/
	cd target/browser && npm ci --silent --no-audit --no-fund
	@touch $@

# Claude Code and Codex, as npm has them. All scenarios run on one wire and two of each agent on each; `AGENTS=all` runs all on each, and
# writes docs/agents.md.
AGENTS ?= some
test-agents: test-tools target/agents/.done ## Let coding agents work through the gateway
	rm -rf target/agents/passed
	WEIRGATE_AGENTS=$(AGENTS) $(CARGO) test --workspace --locked --test gateway -- --ignored agents::claude_code agents::codex agents::gemini
	@if [ "$(AGENTS)" = all ]; then $(CARGO) test --workspace --locked --test gateway agents::matrix -- --ignored; fi

target/agents/.done: tests/agents/package.json tests/agents/package-lock.json
	@mkdir -p target/agents
	cp tests/agents/package.json tests/agents/package-lock.json target/agents/
	cd target/agents && npm ci --silent --no-audit --no-fund
	@touch $@

# chdb, ClickHouse as a library, is 534 MB without what it needs: too much for each run of the suite.
test-clickhouse: test-tools target/clickhouse/.done ## Insert exported lines into ClickHouse's engine
	$(CARGO) test --locked --test gateway log_export::clickhouse -- --include-ignored

target/clickhouse/.done: tests/clients/clickhouse-requirements.txt
	@mkdir -p target/clickhouse
	python3 -m venv target/clickhouse/venv
	target/clickhouse/venv/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

check: cmake ## Format, lint, tidy, documentation, licences
	./.ci/docs
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --locked --test tidy
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	@$(MAKE) --no-print-directory deny

# What the binary is made of: licences, sources, banned crates. Offline, on what a build has fetched; advisories need the
# network, so they are asked for apart: `cargo deny check advisories`.
deny:
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --frozen check bans licenses sources; \
	else echo "skipped: licences and sources of crates (cargo-deny is not installed: cargo install --locked cargo-deny)"; fi

# The suite gives each target some hundred inputs; this is for whoever changes a parser.
FUZZ_INPUTS ?= 1000000
# Memory that is freed stays with the process, or the time of large trees would be the kernel's, for their pages.
FUZZ_MEMORY = MALLOC_ARENA_MAX=1 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8589934592
fuzz: ## Read a million hostile inputs with every parser
	$(FUZZ_MEMORY) WEIRGATE_FUZZ=$(FUZZ_INPUTS) $(CARGO) test --workspace --locked --profile fuzz --test fuzz

# The suite makes some hundred calls.
API_CALLS ?= 20000
schemathesis: test-tools clients ## Make 20,000 random calls of all that the API description names
	WEIRGATE_API_CALLS=$(API_CALLS) $(CARGO) test --locked --test gateway openapi::random

ORACLE = target/oracle
bench: dist test-tools bench-tools $(ORACLE)/.done ## Measure beside bare Pingora
	WEIRGATE_BENCH_BINARY=$(CURDIR)/$(DIST)/unstripped $(CARGO) bench --locked

# Twenty minutes at 3,000 calls a second while two of three providers fail again and again.
soak: dist ## Run the binary that is installed long under load and faults
	WEIRGATE_SOAK_MINUTES=$${WEIRGATE_SOAK_MINUTES:-20} WEIRGATE_BENCH_BINARY=$(CURDIR)/$(DIST)/unstripped $(CARGO) bench \
	--profile quick --locked --bench soak

fleet: cmake test-tools ## Run three processes on one PostgreSQL and one Redis
	WEIRGATE_FLEET_ORGANIZATIONS=$${WEIRGATE_FLEET_ORGANIZATIONS:-10000} WEIRGATE_FLEET_RATE=$${WEIRGATE_FLEET_RATE:-600} \
	WEIRGATE_FLEET_SECONDS=$${WEIRGATE_FLEET_SECONDS:-60} $(CARGO) bench --locked --bench fleet

# They count instructions, allocations and system calls. The bench skips what it cannot count.
bench-tools:
	@command -v valgrind >/dev/null || { $(APT) update -qq && $(APT) install -y -qq valgrind; }
	@command -v strace >/dev/null || { $(APT) update -qq && $(APT) install -y -qq strace; }

# Decisions beside those of the public SDKs: 160,000 each, on datafiles made at random.
SEED ?= 4
oracle: test-tools $(ORACLE)/.done ## Compare decisions with the public SDKs
	rm -rf $(ORACLE)/python $(ORACLE)/npm
	$(ORACLE)/venv/bin/python tests/oracle/generate.py $(ORACLE)/python 200 100 $(SEED)
	WEIRGATE_ORACLE=$(CURDIR)/$(ORACLE)/python $(CARGO) test --locked --test oracle
	$(ORACLE)/venv/bin/python tests/oracle/generate.py $(ORACLE)/npm 200 100 $(SEED) plain
	cp tests/oracle/decide.mjs $(ORACLE)/ && node $(ORACLE)/decide.mjs $(ORACLE)/npm
	mv $(ORACLE)/npm/vectors-npm.jsonl $(ORACLE)/npm/vectors.jsonl
	WEIRGATE_ORACLE=$(CURDIR)/$(ORACLE)/npm $(CARGO) test --locked --test oracle

$(ORACLE)/.done: tests/oracle/requirements.txt tests/oracle/package.json
	@mkdir -p $(ORACLE)
	python3 -m venv $(ORACLE)/venv
	$(ORACLE)/venv/bin/pip install --quiet --disable-pip-version-check -r tests/oracle/requirements.txt
	cp tests/oracle/package.json $(ORACLE)/ && cd $(ORACLE) && npm install --silent --no-audit --no-fund
	@touch $@

# The real SDKs that tests/clients talks to the gateway with.
clients: test-tools target/clients/.done

target/clients/.done: tests/clients/requirements.txt tests/clients/package.json
	@mkdir -p target/clients
	python3 -m venv target/clients/venv
	target/clients/venv/bin/pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt
	cp tests/clients/package.json target/clients/ && cd target/clients && npm install --silent --no-audit --no-fund
	@touch $@

CONFDIR = $(DESTDIR)$(SYSCONFDIR)/weirgate
# A configuration that is there already may have been edited, so it stays, and the new one is laid beside it.
install-conf:
	install -d $(CONFDIR)
	awk -f conf/without-sandboxes.awk conf/weirgate.toml | sed -e 's|"conf/models.toml"|"$(SYSCONFDIR)/weirgate/models.toml"|' -e 's|"sqlite:var/weirgate.db"|"sqlite:/var/lib/weirgate/weirgate.db"|' > $(CONFDIR)/weirgate.toml.new
	cp conf/models.toml $(CONFDIR)/models.toml.new
	chmod 0644 $(CONFDIR)/weirgate.toml.new $(CONFDIR)/models.toml.new
	@cd $(CONFDIR) && for file in weirgate.toml models.toml; do \
	if [ ! -e $$file ] || cmp -s $$file $$file.new; then mv $$file.new $$file; \
	else echo "kept $(CONFDIR)/$$file; what is new is in $$file.new"; fi; done

# The program that is installed and packaged. `BINARY=PATH` takes another one than that of `make dist`.
BINARY ?= $(DIST)/weirgate
LIB = $(DESTDIR)$(PREFIX)/lib
SHARE = $(DESTDIR)$(PREFIX)/share
# Debian's zsh looks into vendor-completions.
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions

# The one list of what is installed. The packages are made of what it lays out.
install: $(BINARY) install-conf ## Install program, units, configuration, manual: PREFIX=/usr DESTDIR=…
	install -D -m 0755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/weirgate
	install -D -m 0644 systemd/weirgate.service $(DESTDIR)$(UNITDIR)/weirgate.service
	install -D -m 0644 systemd/weirgate.socket $(DESTDIR)$(UNITDIR)/weirgate.socket
	sed -i 's|/usr/bin/weirgate|$(PREFIX)/bin/weirgate|' $(DESTDIR)$(UNITDIR)/weirgate.service
	install -D -m 0644 systemd/weirgate.sysusers $(LIB)/sysusers.d/weirgate.conf
	install -D -m 0644 systemd/weirgate.tmpfiles $(LIB)/tmpfiles.d/weirgate.conf
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/fish/vendor_completions.d $(DESTDIR)$(ZSHDIR)
	$(abspath $(BINARY)) man $(SHARE)/man/man1 > /dev/null
	gzip -9nf $(SHARE)/man/man1/weirgate*.1
	$(abspath $(BINARY)) completions bash > $(SHARE)/bash-completion/completions/weirgate
	$(abspath $(BINARY)) completions fish > $(SHARE)/fish/vendor_completions.d/weirgate.fish
	$(abspath $(BINARY)) completions zsh > $(DESTDIR)$(ZSHDIR)/_weirgate
	install -D -m 0644 README.md $(SHARE)/doc/weirgate/README.md
	install -D -m 0644 systemd/deb/copyright $(SHARE)/doc/weirgate/copyright
	gzip -9nc CHANGELOG.md > $(SHARE)/doc/weirgate/changelog.gz
	chmod 0644 $(SHARE)/doc/weirgate/changelog.gz $(SHARE)/man/man1/weirgate*.1.gz

# Times in packages are those of the commit, so that two builds of one program do not differ by them.
VERSION ?= $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
PACKAGES = target/packages
export SOURCE_DATE_EPOCH

deb: $(BINARY) deb-tools ## Build the Debian package: target/packages/weirgate_VERSION_amd64.deb
	systemd/deb/build.sh $(abspath $(BINARY)) $(VERSION) $(PACKAGES)

deb-tools:
	@command -v dpkg-shlibdeps >/dev/null || { $(APT) update -qq && $(APT) install -y -qq dpkg-dev; }

tarball: $(BINARY) sbom ## Build the tarball, its SHA-256 and its list of crates: target/packages/weirgate-VERSION-x86_64-linux.tar.gz
	systemd/tarball.sh $(abspath $(BINARY)) $(VERSION) $(PACKAGES)

# The crates of the program, with versions, sources and licences, as CycloneDX. It does not tell where this checkout lies.
sbom:
	@command -v cargo-cyclonedx >/dev/null || { echo "missing: cargo install --locked cargo-cyclonedx"; exit 1; }
	@mkdir -p $(PACKAGES)
	$(CARGO) cyclonedx --quiet --format json --target x86_64-unknown-linux-gnu --override-filename sbom.cdx
	sed "s|$(CURDIR)|/weirgate|g" sbom.cdx.json > $(PACKAGES)/weirgate-$(VERSION).sbom.cdx.json
	rm -f sbom.cdx.json filters/sbom.cdx.json

container: $(BINARY) ## Build the container image weirgate:VERSION with buildah
	examples/container/build.sh $(abspath $(BINARY)) $(VERSION) $(PACKAGES)

# In a fresh Debian: install, serve, upgrade under load, keep what was edited, purge.
test-packages: $(BINARY) deb-tools ## Try the Debian package in a fresh Debian, and the image (root)
	@for name in mmdebstrap buildah; do command -v $$name >/dev/null || { $(APT) update -qq && $(APT) install -y -qq $$name; } || exit 1; done
	tests/packages/deb.sh $(abspath $(BINARY)) $(VERSION)
	tests/packages/image.sh $(abspath $(BINARY)) $(VERSION)
