import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fakeMachine, healthy, type MachineSketch } from '../../../../test/fakes/machine.ts';
import { realClock } from '../../../lib/index.ts';
import type { DoctorOptions, Finding } from '../check.ts';
import { examine } from '../check.ts';
import { allChecks } from './index.ts';

async function findingsOn(
  change: Partial<MachineSketch>,
  options: DoctorOptions = { dataDirectory: '/var/lib/kubeling' },
): Promise<readonly Finding[]> {
  const patient = { ...options, machine: fakeMachine({ ...healthy, ...change }) };
  return await examine(allChecks, patient, realClock(), new AbortController().signal);
}

function without<T>(record: Readonly<Record<string, T>>, ...keys: readonly string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));
}

/** Returns all findings that are not ok, each as its severity followed by the name of its check. */
function complaints(findings: readonly Finding[]): readonly string[] {
  return findings
    .filter(({ severity }) => severity !== 'ok')
    .map(({ severity, check }) => `${severity} ${check}`);
}

function only(findings: readonly Finding[], check: string): readonly Finding[] {
  return findings.filter((finding) => finding.check === check && finding.severity !== 'ok');
}

describe('doctor on a healthy machine', () => {
  it('finds no problem on a healthy machine', async () => {
    const findings = await findingsOn({});
    assert.deepEqual(complaints(findings), []);
    assert.equal(new Set(findings.map(({ check }) => check)).size, allChecks.length);
  });
});

describe('doctor on a machine with hybrid cgroup v1, without systemd and CAP_SYS_RESOURCE', () => {
  const mountinfo = [
    '31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu',
    '32 30 0:28 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset',
    '33 30 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
    '34 30 0:30 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids',
    '35 30 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw',
  ].join('\n');
  const sketch: Partial<MachineSketch> = {
    files: {
      ...healthy.files,
      '/proc/self/mountinfo': mountinfo,
      '/proc/self/status': 'CapEff:\t000001fffeffffff\nSeccomp:\t0\n',
    },
    kinds: without(healthy.kinds, '/run/systemd/system'),
  };

  it('reports hybrid cgroup v1, missing systemd and missing CAP_SYS_RESOURCE as notes with consequences, and no failure', async () => {
    const findings = await findingsOn(sketch);
    assert.deepEqual(complaints(findings), ['note capabilities', 'note cgroups', 'note systemd']);
    assert.match(JSON.stringify(only(findings, 'capabilities')), /CAP_SYS_RESOURCE.*restrict_oom_score_adj/);
    assert.match(JSON.stringify(only(findings, 'cgroups')), /hybrid.*cgroupfs.*rejects/);
    assert.match(JSON.stringify(only(findings, 'systemd')), /cgroupfs.*logind/);
  });

  it('reports cgroup v1 without hybrid when no v2 tree is mounted', async () => {
    const files = { ...sketch.files, '/proc/self/mountinfo': mountinfo.split('\n').slice(0, 4).join('\n') };
    assert.match(
      only(await findingsOn({ ...sketch, files }), 'cgroups')[0]?.finding ?? '',
      /^v1: cpu cpuset memory pids$/,
    );
  });
});

describe('doctor on a machine with nothing installed', () => {
  const bare: Partial<MachineSketch> = {
    commands: {},
    directories: {},
    kinds: without(healthy.kinds, '/run/containerd/containerd.sock'),
  };

  it('fails without a runtime and mount tools, and says which packages to install', async () => {
    const findings = await findingsOn(bare);
    assert.deepEqual(complaints(findings), [
      'fail runtime socket',
      'note runtime programs',
      'warn runtime programs',
      'warn cni plugins',
      'note cni config',
      'warn packet filter',
      'warn iproute2',
      'fail mount tools',
      'fail mount tools',
      'warn mount tools',
      'warn mount tools',
      'note kubectl',
    ]);
    for (const finding of findings) {
      if (finding.severity === 'warn' || finding.severity === 'fail') assert.notEqual(finding.advice, '');
    }
  });

  it('accepts a missing socket when a containerd is installed that can be started', async () => {
    const findings = await findingsOn({ ...bare, commands: healthy.commands });
    assert.deepEqual(complaints(findings).slice(0, 1), ['note runtime socket']);
  });
});

describe('doctor on the runtime', () => {
  it('warns about a runtime socket that does not respond', async () => {
    const runtimes = { 'unix:///run/containerd/containerd.sock': new Error('unknown service') };
    const found = only(await findingsOn({ runtimes }), 'runtime socket');
    assert.deepEqual(
      found.map(({ severity }) => severity),
      ['warn'],
    );
    assert.match(found[0]?.finding ?? '', /unknown service/);
  });

  it('checks only the given endpoint, and fails when it does not respond', async () => {
    const options = { dataDirectory: '/data', runtimeEndpoint: 'unix:///elsewhere.sock' };
    const found = only(await findingsOn({}, options), 'runtime socket');
    assert.deepEqual(
      found.map(({ severity }) => severity),
      ['fail'],
    );
    assert.match(found[0]?.finding ?? '', /elsewhere/);
  });

  it('finds the private containerd in the data directory', async () => {
    const kinds = { '/data/containerd/containerd.sock': 'socket' } as const;
    const runtimes = { 'unix:///data/containerd/containerd.sock': { name: 'containerd', version: '1.6.20' } };
    const findings = await findingsOn({ kinds, runtimes }, { dataDirectory: '/data' });
    assert.match(
      findings.find(({ check }) => check === 'runtime socket')?.finding ?? '',
      /containerd 1\.6\.20 responds at unix:\/\/\/data/,
    );
  });

  const versions = [
    ['1.5.9', 'fail'],
    ['1.6.20~ds1', 'note'],
    ['1.7.0', undefined],
    ['2.0.0', undefined],
  ] as const;
  for (const [version, severity] of versions) {
    it(`rates containerd ${version} as ${severity ?? 'ok'}`, async () => {
      const commands = {
        ...healthy.commands,
        containerd: `containerd example.org/containerd ${version} abc`,
      };
      assert.equal(only(await findingsOn({ commands }), 'runtime programs')[0]?.severity, severity);
    });
  }
});

describe('doctor on a machine with one problem', () => {
  const file = (path: string, text: string): Partial<MachineSketch> => ({
    files: { ...healthy.files, [path]: text },
  });
  const cases: readonly (readonly [string, Partial<MachineSketch>, string])[] = [
    ['an old Node.js', { nodeVersion: '22.20.0' }, 'fail node'],
    ['a Node.js just too old', { nodeVersion: '24.14.9' }, 'fail node'],
    ['another operating system', { platform: 'darwin' }, 'fail architecture'],
    ['another processor', { arch: 'riscv64' }, 'warn architecture'],
    ['an ordinary user', { uid: 1000 }, 'fail root'],
    ['a clock that was never set', { now: 0 }, 'fail clock'],
    ['an ancient kernel', { kernelRelease: '4.18.0-553.el8' }, 'warn kernel'],
    ['a kernel without required features', { kernelRelease: '5.10.0-30-amd64' }, 'note kernel'],
    ['swap', file('/proc/swaps', 'Filename\tType\n/dev/sda2\tpartition\n'), 'warn swap'],
    ['user namespaces turned off', file('/proc/sys/user/max_user_namespaces', '0\n'), 'note user namespaces'],
    [
      'a bridge that bypasses iptables',
      file('/proc/sys/net/bridge/bridge-nf-call-iptables', '0\n'),
      'note bridge',
    ],
    ['no forwarding', file('/proc/sys/net/ipv4/ip_forward', '0\n'), 'note ip forwarding'],
    ['an empty machine id', file('/etc/machine-id', 'uninitialized\n'), 'note machine id'],
    ['few inotify instances', file('/proc/sys/fs/inotify/max_user_instances', '128\n'), 'note inotify'],
    [
      'few open files',
      file('/proc/self/limits', 'Max open files   1024   1024   files\n'),
      'warn open files',
    ],
    ['a port in use', file('/proc/net/tcp', 'sl\n 0: 00000000:280A 00000000:0000 0A\n'), 'warn ports'],
    ['no memory controller', file('/sys/fs/cgroup/cgroup.controllers', 'cpuset cpu pids\n'), 'fail cgroups'],
    ['no cgroups', file('/proc/self/mountinfo', '24 1 8:1 / / rw - ext4 /dev/sda1 rw\n'), 'fail cgroups'],
    ['no overlay', file('/proc/filesystems', '\text4\n'), 'warn overlayfs'],
    ['a full disk', { space: { ...healthy.space, availableBytes: 1e9 } }, 'warn disk'],
    ['no inodes', { space: { ...healthy.space, freeInodes: 10 } }, 'warn disk'],
    ['data on overlayfs', { space: { ...healthy.space, type: 0x794c7630 } }, 'warn disk'],
    [
      'no SYS_ADMIN',
      file('/proc/self/status', 'CapEff:\t000001ffffdfffff\nSeccomp:\t0\n'),
      'fail capabilities',
    ],
  ];
  for (const [what, change, expected] of cases) {
    it(`reports only "${expected}" for one problem: ${what}`, async () => {
      assert.deepEqual([...new Set(complaints(await findingsOn(change)))], [expected]);
    });
  }

  it('combines the missing capabilities of an ordinary user into one failure', async () => {
    const sketch = file('/proc/self/status', 'CapEff:\t0000000000000000\nSeccomp:\t0\n');
    assert.deepEqual(complaints(await findingsOn(sketch)), ['fail capabilities']);
  });

  it('ignores an established connection on a checked port', async () => {
    const sketch = file('/proc/net/tcp', 'sl\n 0: 00000000:280A 00000000:0000 01\n');
    assert.deepEqual(complaints(await findingsOn(sketch)), []);
  });

  it('accepts a kernel module that is not loaded but available', async () => {
    const files = {
      ...healthy.files,
      '/proc/filesystems': '\text4\n',
      '/lib/modules/6.12.48-amd64/modules.dep': 'kernel/fs/overlayfs/overlay.ko.xz:\n',
    };
    assert.deepEqual(complaints(await findingsOn({ files })), []);
  });

  it('reports a read-only cgroup tree, as in an ordinary container', async () => {
    const sketch = file(
      '/proc/self/mountinfo',
      '30 24 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw,nsdelegate\n',
    );
    assert.match(only(await findingsOn(sketch), 'cgroups')[0]?.finding ?? '', /read-only/);
  });
});

describe('doctor on a machine whose facts cannot be read', () => {
  it('warns about each unreadable fact and runs the other checks', async () => {
    const denied = new Error('EACCES: permission denied');
    const files = Object.fromEntries(Object.keys(healthy.files).map((path) => [path, denied]));
    const findings = await findingsOn({ files });
    assert.ok(only(findings, 'cgroups')[0]?.finding.includes('EACCES'));
    assert.deepEqual(only(findings, 'mount tools'), []);
    assert.equal(new Set(findings.map(({ check }) => check)).size, allChecks.length);
  });

  it('reports findings for empty files instead of crashing', async () => {
    const files = Object.fromEntries(Object.keys(healthy.files).map((path) => [path, '']));
    assert.equal(new Set((await findingsOn({ files })).map(({ check }) => check)).size, allChecks.length);
  });
});
