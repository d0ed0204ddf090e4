import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { removeRules } from '../../src/containerd/iptables.ts';
import type { Run } from '../../src/containerd/machine.ts';
import { unmountBelow } from '../../src/containerd/mounts.ts';
import { removeBridge } from '../../src/containerd/network-links.ts';
import { absoluteArgument, realClock, umountArguments } from '../../src/lib/index.ts';
import { hostSubPaths } from '../../src/runtime/containers/subpaths.ts';
import { journalArguments } from '../../src/server/system-logs/journal.ts';
import {
  HostBlockDevices,
  HostDirectoryQuotas,
  HostDisks,
  HostNetworkMounts,
  HostVolumeFiles,
} from '../../src/volumes/index.ts';
import { runGroupWalk } from '../../src/volumes/ownership/run-group-walk.ts';
import { startedPrograms } from '../architecture/started-programs.ts';
import { ArgumentRecorder, type Recorded } from '../fakes/argument-recorder.ts';

const { signal } = new AbortController();
const clock = realClock();
const folder = mkdtempSync(join(tmpdir(), 'klg-hostile-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const names =
  'mount umount stat blkid fsck dd losetup chattr setquota mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.other'.split(
    ' ',
  );
const recorder = new ArgumentRecorder(folder, {
  ...Object.fromEntries(names.map((name) => [name, ':'])),
  blkid: `if [ -e '${folder}/type' ]; then printf 'TYPE='; cat '${folder}/type'; else exit 2; fi`,
  lsattr: 'shift 3; for each; do echo "    0 ---- $each"; done',
  repquota: ':',
  xfs_growfs: ':',
  resize2fs: ':',
  btrfs: ':',
});
process.env['PATH'] = `${recorder.folder}:${process.env['PATH']}`;

const long = 'a'.repeat(65_536);
/** Hostile strings, passed as whole arguments and as the last component of a path. */
const hostile = [
  '-iT/x',
  '-fx',
  '--',
  '--help',
  'a,bind',
  'a b',
  'a\nb',
  'a\0b',
  '$(id)',
  '; id',
  '`id`',
  long,
];

/**
 * The result of one call site: the arguments that programs received, and the inputs that were
 * rejected.
 */
interface Outcome {
  readonly recorded: readonly Recorded[];
  readonly refusals: readonly unknown[];
}

type Attempt = (text: string, below: string) => readonly (() => unknown)[];

const quiet = {
  check: async () => {},
  firstBelow: async () => undefined,
  mountsOf: async () => 'elsewhere' as const,
};
const volumeFiles = new HostVolumeFiles(clock, { mount: () => 'failed', unmount: () => 'failed' }, quiet);
const disks = new HostDisks(clock);
const devices = new HostBlockDevices(clock);
const network = new HostNetworkMounts({ clock, mounted: () => {} });
const nfs = { type: 'nfs', source: 's:/x', directory: '/nowhere', options: [] } as const;
const disk = { device: '/dev/none', directory: '/nowhere', fsType: 'ext4', options: [] };
const quotas = new HostDirectoryQuotas({
  clock,
  mounts: async () => [
    { mountPoint: '/', device: '1:1', root: '/', isShared: false, fsType: 'xfs', superOptions: ['prjquota'] },
  ],
  registryDir: folder,
});

/** A fake program runner that records the arguments. */
let handed: Recorded[] = [];
const run: Run = async (file, args) => {
  handed.push({ program: file, args });
  if (file === 'umount' && args[0] === '--') throw new Error('busy');
  const rules = args.includes('-S') ? listing : '';
  return { end: { kind: 'exited', code: 0 }, stdout: rules, stderr: '', droppedBytes: 0 };
};
let listing = '';

function table(text: string): string {
  const escaped = text.replaceAll(
    /[\s\\]/g,
    (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`,
  );
  const procDir = join(folder, 'proc');
  mkdirSync(join(procDir, 'self'), { recursive: true });
  const line = (at: string) => `1 0 0:1 / ${at} rw - tmpfs tmpfs rw\n`;
  writeFileSync(join(procDir, 'self/mountinfo'), line(`/ours/${escaped}`) + line(`/ours/${escaped}/in`));
  return procDir;
}

/** Creates a fake /sys with a loop device whose backing file has the hostile name. */
function loops(text: string): string {
  const sysDir = mkdtempSync(join(folder, 'sys-'));
  mkdirSync(join(sysDir, 'block/loop0/loop'), { recursive: true });
  writeFileSync(join(sysDir, 'block/loop0/loop/backing_file'), `/ours/${text}\n`);
  return sysDir;
}

function bridge(port: string): string {
  const sysDir = mkdtempSync(join(folder, 'sys-'));
  mkdirSync(join(sysDir, 'class/net/klg0/brif', port), { recursive: true });
  return sysDir;
}

const grown = (type: string, directory: string) => () => {
  writeFileSync(join(folder, 'type'), `${type}\n`);
  return disks.grow({ device: '/dev/none', directory }, signal).finally(() => rmSync(join(folder, 'type')));
};

const inPod = (below: string) => join(folder, 'volumes', below);
const both =
  (act: (path: string) => unknown): Attempt =>
  (text, below) => [() => act(text), () => act(below)];

/**
 * Records the unmount of a path, for call sites that unmount only mounts found in the kernel's
 * mount table.
 */
const unmounting = (path: string) => void handed.push({ program: 'umount', args: umountArguments([], path) });

/** Sets the quota of a directory with the hostile name, on a disk with quotas. */
function limited(below: string): Promise<unknown> {
  const directory = join(folder, 'limited', below);
  mkdirSync(directory, { recursive: true });
  return quotas.limit(directory, 1n, signal);
}

const attempts: Readonly<Record<string, Attempt>> = {
  "src/lib/unresponsive-mounts.ts 'stat'": both(
    (path) => void handed.push({ program: 'stat', args: ['--', absoluteArgument('stat', path)] }),
  ),
  "src/volumes/nfs/host-network-mounts.ts 'mount'": (text, below) => [
    () => network.mount({ ...nfs, source: text }, signal),
    () => network.mount({ ...nfs, source: `s:${below}` }, signal),
    () => network.mount({ ...nfs, directory: text }, signal),
    () => network.mount({ ...nfs, directory: below }, signal),
    () => network.mount({ ...nfs, options: ['ro', text] }, signal),
    () => network.mount({ ...nfs, options: [`addr=${text}`] }, signal),
  ],
  "src/volumes/nfs/host-network-mounts.ts 'umount'": both((path) => network.unmount(path, 'lazy', signal)),
  "src/volumes/nfs/host-network-mounts.ts 'stat'": both((path) => network.check(path, signal)),
  "src/volumes/local/host-disks.ts 'blkid'": both((path) => disks.probe(path, signal)),
  'src/volumes/local/host-disks.ts program': (text, below) => [
    ...['ext4', 'xfs', 'btrfs', 'other'].flatMap((type) => [
      () => disks.format(text, type, signal),
      () => disks.format(below, type, signal),
    ]),
    () => disks.format('/dev/none', text, signal),
  ],
  "src/volumes/local/host-disks.ts 'fsck'": both((path) => disks.check(path, signal)),
  'src/volumes/local/host-disks.ts file': (text, below) => [
    grown('xfs', text),
    grown('xfs', below),
    grown('btrfs', below),
    grown(text.slice(0, 1_000), '/nowhere'),
  ],
  "src/volumes/local/host-disks.ts 'mount'": (text, below) => [
    () => disks.mount({ ...disk, device: text }, signal),
    () => disks.mount({ ...disk, device: below }, signal),
    () => disks.mount({ ...disk, directory: text }, signal),
    () => disks.mount({ ...disk, fsType: text }, signal),
    () => disks.mount({ ...disk, options: [text] }, signal),
  ],
  'src/volumes/local/host-disks.ts process.execPath': both((path) => disks.isHeld(path, signal)),
  "src/volumes/local/host-disks.ts 'dd'": both((path) => disks.probe(path, signal)),
  "src/volumes/block/host-block-devices.ts 'mount'": (text, below) => [
    () => devices.bind(text, join(folder, 'devices/file'), signal),
    () => devices.bind(below, join(folder, 'devices/file'), signal),
    () => devices.bind('/dev/none', inPod(text), signal),
  ],
  "src/volumes/block/host-block-devices.ts 'umount'": both(unmounting),
  "src/volumes/block/host-block-devices.ts 'losetup'": both((path) => devices.pin(path, signal)),
  "src/volumes/files/host-volume-files.ts 'mount'": (text, below) => [
    () => volumeFiles.bind(text, '/nowhere', [], signal),
    () => volumeFiles.bind(below, '/nowhere', [], signal),
    () => volumeFiles.bind('/dev/none', text, [], signal),
    () => volumeFiles.bind('/dev/none', below, ['ro'], signal),
    () => volumeFiles.bind('/dev/none', '/nowhere', ['ro', text], signal),
    () => volumeFiles.remount('/nowhere', [text], signal),
    () => volumeFiles.mountMemory(text, 1n, signal),
    () => volumeFiles.mountMemory(below, 1n, signal),
  ],
  "src/volumes/files/host-volume-files.ts 'umount'": both((path) => volumeFiles.unmount(path, signal)),
  "src/volumes/files/host-volume-files.ts 'stat'": both((path) => volumeFiles.spaceAt(path, signal)),
  "src/volumes/emptydir/host-directory-quotas.ts 'chattr'": (text) => [
    () => quotas.limit(text, 1n, signal),
    () => limited(text),
  ],
  "src/volumes/emptydir/host-directory-quotas.ts 'lsattr'": (text, below) => [
    () => quotas.release(['/', text], signal),
    () => quotas.release(['/', below], signal),
  ],
  "src/volumes/emptydir/host-directory-quotas.ts 'setquota'": (text) => [
    () => quotas.limit(text, 1n, signal),
    () => limited(text),
  ],
  "src/volumes/emptydir/host-directory-quotas.ts 'repquota'": (text) => [
    () => quotas.limit(text, 1n, signal),
    () => limited(text),
  ],
  'src/volumes/ownership/run-group-walk.ts process.execPath': both((path) =>
    runGroupWalk(clock, path, { group: 1, bits: undefined }, () => {}),
  ),
  "src/runtime/containers/subpaths.ts 'mount'": (text) => [
    () => hostSubPaths(clock, quiet).bind(folder, 'part', inPod(text), signal),
    () => hostSubPaths(clock, quiet).bind(folder, text, inPod('target'), signal),
  ],
  "src/runtime/containers/subpaths.ts 'umount'": both(unmounting),
  'src/server/system-logs/journal.ts program': (text) => [
    () =>
      void handed.push({
        program: 'journalctl',
        args: journalArguments([text], { boot: -1, pattern: text }),
      }),
  ],
  "src/containerd/mounts.ts 'mount'": (text) => [
    () => unmountBelow('/ours', { run, procDir: table(text), sysDir: loops(text) }, signal),
  ],
  "src/containerd/mounts.ts 'umount'": (text) => [
    () => unmountBelow('/ours', { run, procDir: table(text), sysDir: loops(text) }, signal),
  ],
  "src/containerd/mounts.ts 'losetup'": (text) => [
    () => unmountBelow('/ours', { run, procDir: table(text), sysDir: loops(text) }, signal),
  ],
  'src/containerd/network-links.ts deps.ip': (text) => [
    () => removeBridge('klg0', { run, ip: 'ip', sysDir: bridge(text) }, signal),
  ],
  'src/containerd/iptables.ts iptables': (text) => [
    () => {
      const quoted = text.replaceAll(/["\\]/g, '\\$&');
      listing = `-A POSTROUTING -m comment --comment "name: \\"klg0\\" id: ${quoted}" -j CNI-0123456789\n`;
      return removeRules('iptables', 'klg0', run, signal);
    },
  ],
};

/** Whether the program may parse the argument as an option. */
function isOption({ program, args }: Recorded, text: string): boolean {
  const end = args.indexOf('--');
  // Options that always consume the next argument.
  const takers = ['--comment', 'dev', '-t', '-o'];
  return args.some((arg, index) => {
    // The first `--` is added by kubeling; every argument after it is data.
    if (!arg.includes(text) || (end >= 0 && index >= end)) return false;
    if (text === '--' && arg !== text) return false;
    if (takers.includes(args[index - 1] ?? '')) return false;
    const isOurs = /^(?:--unit=|--grep=|if=|\/)/.test(arg);
    return !isOurs || program.includes(text);
  });
}

async function outcomeOf(acts: readonly (() => unknown)[]): Promise<Outcome> {
  recorder.take();
  handed = [];
  const refusals: unknown[] = [];
  for (const act of acts) {
    try {
      await act();
    } catch (error) {
      refusals.push(error);
    }
  }
  return { recorded: [...recorder.take(), ...handed], refusals };
}

describe('external strings in program arguments', { timeout: 600_000 }, () => {
  const fromOutside = startedPrograms.filter(({ outside }) => outside !== '');

  it('external strings are tested at every call site in the source', () => {
    const places = fromOutside.map(({ file, program }) => `${file} ${program}`);
    assert.deepEqual(Object.keys(attempts).toSorted(), places.toSorted());
  });

  for (const [place, attempt] of Object.entries(attempts))
    it(`external strings are passed as data or rejected at ${place}`, async () => {
      const reached = new Set<string>();
      for (const text of hostile) {
        const { recorded, refusals } = await outcomeOf(attempt(text, `/nowhere/${text}`));
        const shown = JSON.stringify(text.slice(0, 20));
        for (const each of recorded) {
          reached.add(each.program);
          const line = JSON.stringify([each.program, ...each.args]).slice(0, 500);
          assert.equal(isOption(each, text), false, `${shown} is an option in ${line}`);
        }
        for (const refusal of refusals) assert.ok(refusal instanceof Error && refusal.message !== '', shown);
      }
      const literal = /'(.*)'/.exec(place)?.[1];
      if (literal !== undefined) assert.ok(reached.has(literal), `${literal} was rejected for all of them`);
    });

  it('external strings are passed as data to the script that Node.js runs, not as options of Node.js', async () => {
    // If Node.js parsed the name as its option --eval, it would exit with code 3, which means that
    // the device is in use.
    assert.equal(await disks.isHeld('--eval=process.exit(3)', signal), false);
  });
});
