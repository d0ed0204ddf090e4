import { execFile } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Everything that a test could leave behind on the machine, one readable line for each item. */
export interface MachineSnapshot {
  /** The command lines of all processes; kernel threads have none and are omitted. */
  readonly processes: readonly string[];
  readonly mounts: readonly string[];
  readonly links: readonly string[];
  /** The IDs of all network namespaces that a process or a mount holds. */
  readonly networkNamespaces: readonly string[];
  readonly cgroups: readonly string[];
  readonly firewallRules: readonly string[];
  /** Files in the directories that all users of containerd and CNI share. */
  readonly sharedFiles: readonly string[];
}

export type SnapshotPart = keyof MachineSnapshot;

export interface SnapshotDifference {
  readonly added: MachineSnapshot;
  readonly removed: MachineSnapshot;
}

const sharedDirs = [
  '/run/containerd/s',
  '/run/containerd/runc',
  '/var/lib/cni/results',
  '/var/lib/cni/networks',
  '/run/netns',
];

export async function takeSnapshot(): Promise<MachineSnapshot> {
  const mountinfo = (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .filter((line) => line !== '');
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return {
    processes: await commandLines(pids),
    mounts: mountinfo.map((line) => `${line.split(' ')[4]} ${line.split(' - ')[1]?.split(' ')[0]}`),
    links: await readdir('/sys/class/net'),
    networkNamespaces: await networkNamespaces(pids, mountinfo),
    cgroups: await directoriesBelow('/sys/fs/cgroup'),
    firewallRules: (await Promise.all(['nat', 'filter', 'mangle'].map(firewallRules))).flat(),
    sharedFiles: (await Promise.all(sharedDirs.map(filesBelow))).flat(),
  };
}

/** The lines that only one of two snapshots contains, counting repeated lines. */
export function compareSnapshots(before: MachineSnapshot, after: MachineSnapshot): SnapshotDifference {
  return { added: subtract(after, before), removed: subtract(before, after) };
}

/**
 * Keeps only the lines that contain one of the words, because unrelated work on the machine changes
 * the other lines. The words should be unique to the test: a data directory, a bridge, a container
 * ID.
 */
export function mentioning(snapshot: MachineSnapshot, words: readonly string[]): MachineSnapshot {
  return mapParts(snapshot, (lines) => lines.filter((line) => words.some((word) => line.includes(word))));
}

/** Every line of a snapshot with the name of its part. */
export function listSnapshot(snapshot: MachineSnapshot): readonly string[] {
  return Object.entries(snapshot).flatMap(([part, lines]) =>
    (lines as readonly string[]).map((line) => `${part}: ${line}`),
  );
}

function subtract(from: MachineSnapshot, other: MachineSnapshot): MachineSnapshot {
  return mapParts(from, (lines, part) => {
    const left = [...other[part]];
    return lines.filter((line) => {
      const at = left.indexOf(line);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
  });
}

function mapParts(
  snapshot: MachineSnapshot,
  map: (lines: readonly string[], part: SnapshotPart) => readonly string[],
): MachineSnapshot {
  const parts = Object.entries(snapshot) as [SnapshotPart, readonly string[]][];
  return Object.fromEntries(
    parts.map(([part, lines]) => [part, map(lines, part)]),
  ) as unknown as MachineSnapshot;
}

async function commandLines(pids: readonly string[]): Promise<string[]> {
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return lines.filter((line) => line !== '').map((line) => line.replaceAll('\0', ' ').trim());
}

async function networkNamespaces(pids: readonly string[], mountinfo: readonly string[]): Promise<string[]> {
  const ofProcesses = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/ns/net`).catch(() => '')));
  const ofMounts = mountinfo
    .map((line) => line.split(' ')[3] ?? '')
    .filter((root) => root.startsWith('net:['));
  return [...new Set([...ofProcesses, ...ofMounts])].filter((id) => id !== '');
}

async function firewallRules(table: string): Promise<string[]> {
  const { stdout } = await execute('iptables', ['-w', '-t', table, '-S']).catch(() => ({ stdout: '' }));
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `${table} ${line}`);
}

async function directoriesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const dirs = entries.filter((entry) => entry.isDirectory()).map((entry) => join(dir, entry.name));
  return [...dirs, ...(await Promise.all(dirs.map(directoriesBelow))).flat()];
}

async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => []);
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
}
