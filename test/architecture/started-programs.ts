import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOnly, importsOf } from './source-text.ts';

/**
 * A place in the source that starts a program, or passes a program to a function that starts it.
 */
export interface StartedProgram {
  readonly file: string;
  /** The program argument as written in the call. */
  readonly program: string;
  /**
   * The arguments that depend on a manifest, an API object, a driver, a file name or the output of
   * another program.
   */
  readonly outside: string;
  /** The check which ensures that the external arguments have only their intended meaning. */
  readonly check: string;
  readonly end: End;
}

/**
 * Why no argument from outside can be parsed as an option: it follows `--`; it is a path with a
 * leading slash; it follows a fixed prefix in the same argument, or an option that always consumes
 * the next argument; or there is no such argument.
 */
type End = '--' | 'absolute path' | 'own words first' | 'nothing from outside';

const none = { outside: '', check: '', end: 'nothing from outside' } as const;
const path = { check: 'absoluteArgument', end: '--' } as const;
const target = {
  outside: 'directory, with the name of the volume or container',
  check: 'umountArguments',
  end: '--',
} as const;
const inside = {
  outside: 'mount points as the kernel lists them',
  check: 'umountArguments',
  end: '--',
} as const;
const handsOn = { ...none, check: 'hands on the others of this file' } as const;
const ofConfig = 'the configuration of the node names program and arguments';

function at(file: string, program: string, facts: Omit<StartedProgram, 'file' | 'program'>): StartedProgram {
  return { file, program, ...facts };
}

/**
 * All places that start programs. One test compares the table with the source, another one passes
 * hostile arguments to each place.
 */
export const startedPrograms: readonly StartedProgram[] = [
  at('src/lib/run-command.ts', 'command.file', { ...none, check: 'refuses NUL; never a shell' }),
  at('src/lib/run-command.ts', 'file', handsOn),
  at('src/lib/unresponsive-mounts.ts', "'stat'", {
    ...path,
    outside: 'mount points as the kernel lists them',
  }),

  at('src/volumes/nfs/host-network-mounts.ts', "'mount'", {
    outside: 'nfs.server, nfs.path, mountOptions, name of the volume',
    check: 'nfsSource, checkedMountOptions, mountArguments',
    end: '--',
  }),
  at('src/volumes/nfs/host-network-mounts.ts', "'umount'", target),
  at('src/volumes/nfs/host-network-mounts.ts', "'stat'", {
    ...path,
    outside: 'directory, with the name of the volume',
  }),
  at('src/volumes/nfs/host-network-mounts.ts', 'file', handsOn),
  at('src/volumes/local/host-disks.ts', "'blkid'", { ...path, outside: 'local.path' }),
  at('src/volumes/local/host-disks.ts', 'program', {
    outside: 'fsType, in the name mkfs.<type>; local.path',
    check: 'checkedDiskType, absoluteArgument; `--` for ext2, ext3, ext4, xfs and btrfs',
    end: 'absolute path',
  }),
  at('src/volumes/local/host-disks.ts', "'fsck'", {
    outside: 'local.path',
    check: 'absoluteArgument; behind `--` fsck would have options of the file system',
    end: 'absolute path',
  }),
  at('src/volumes/local/host-disks.ts', 'file', {
    outside: 'type of the file system as blkid has it; local.path; directory, with the name of the volume',
    check: 'types and programs are a fixed table; absoluteArgument',
    end: '--',
  }),
  at('src/volumes/local/host-disks.ts', "'mount'", {
    outside: 'fsType, mountOptions, local.path, name of the volume',
    check: 'checkedDiskType, checkedMountOptions, absoluteArgument, mountArguments',
    end: '--',
  }),
  at('src/volumes/local/host-disks.ts', 'process.execPath', {
    outside: 'device as the kernel names it',
    check: 'a script of ours reads it',
    end: '--',
  }),
  at('src/volumes/local/host-disks.ts', "'dd'", {
    outside: 'local.path',
    check: 'behind if=',
    end: 'own words first',
  }),
  at('src/volumes/block/host-block-devices.ts', "'mount'", {
    outside: 'local.path; names of the volume and the pod',
    check: 'absoluteArgument, mountArguments',
    end: '--',
  }),
  at('src/volumes/block/host-block-devices.ts', "'umount'", target),
  at('src/volumes/block/host-block-devices.ts', "'losetup'", {
    outside: 'names of the volume and the pod; loop devices as the kernel names them',
    check: 'absoluteArgument; -d takes the next argument whatever it is',
    end: '--',
  }),
  at('src/volumes/block/host-block-devices.ts', 'file', handsOn),
  at('src/volumes/files/host-volume-files.ts', "'mount'", {
    outside: 'local.path, mountOptions, name of the volume; mount points as the kernel lists them',
    check: 'checkedMountOptions, absoluteArgument, mountArguments',
    end: '--',
  }),
  at('src/volumes/files/host-volume-files.ts', "'umount'", target),
  at('src/volumes/files/host-volume-files.ts', "'stat'", {
    ...path,
    outside: 'directory, with the name of the volume',
  }),
  at('src/volumes/files/host-volume-files.ts', 'file', handsOn),
  at('src/volumes/emptydir/host-directory-quotas.ts', "'chattr'", {
    ...path,
    outside: 'directory, with the name of the volume',
  }),
  at('src/volumes/emptydir/host-directory-quotas.ts', "'lsattr'", {
    ...path,
    outside: 'directory, with the name of the volume',
  }),
  at('src/volumes/emptydir/host-directory-quotas.ts', "'setquota'", {
    outside: 'mount point of the disk as the kernel lists it',
    check: 'project and limits are numbers',
    end: '--',
  }),
  at('src/volumes/emptydir/host-directory-quotas.ts', "'repquota'", {
    outside: 'mount point of the disk as the kernel lists it',
    check: 'the kernel names it with a leading slash',
    end: '--',
  }),
  at('src/volumes/emptydir/host-directory-quotas.ts', 'file', handsOn),
  at('src/volumes/ownership/run-group-walk.ts', 'process.execPath', {
    outside: 'directory, with the name of the volume',
    check: 'absoluteArgument; behind a script of ours, where Node.js has no options',
    end: 'absolute path',
  }),

  at('src/runtime/containers/subpaths.ts', "'mount'", {
    outside: 'names of the volume and the container; mount points as the kernel lists them',
    check: 'the source is a path of a descriptor of ours; mountArguments',
    end: '--',
  }),
  at('src/runtime/containers/subpaths.ts', "'umount'", inside),
  at('src/runtime/containers/subpaths.ts', 'file', handsOn),
  at('src/runtime/images/credentials/plugin-provider.ts', 'posix.join(this.#deps.binDir, name)', {
    ...none,
    check: `${ofConfig}; image, token and annotations go to standard input as JSON`,
  }),
  at('src/runtime/images/credentials/exec-plugin.ts', 'file', {
    ...none,
    check: 'hands on plugin-provider.ts',
  }),
  at('src/api/credentials/exec.ts', 'file', {
    ...none,
    check: 'the kubeconfig of the node names program and arguments',
  }),
  at('src/api/client/wire-client-set.ts', '', { ...none, check: 'hands runChecked to credentials-exec.ts' }),
  at('src/server/system-logs/journal.ts', 'program', {
    outside: 'services, pattern, times, numbers of a request for logs',
    check: 'readNodeLogQuery, journalArguments: each behind the name of its option and =',
    end: 'own words first',
  }),

  at('src/node/host-firewall.ts', "'iptables'", none),
  at('src/node/host-firewall.ts', "'ip6tables'", none),
  at('src/node/shutdown/logind.ts', "'systemd-inhibit'", {
    ...none,
    check: 'the only shell, with a script of ours',
  }),
  at('src/cli/data-directory/firewall.ts', 'file', { ...none, check: 'hands on host-firewall.ts' }),
  at('src/cli/service/run-as-service.ts', "'flock'", none),
  at('src/cli/service/service-manager.ts', "'prlimit'", { ...none, check: 'numbers' }),
  at('src/cli/service/service-manager.ts', "'systemd-notify'", none),
  at('src/cli/streams/stdio.ts', "'stty'", none),
  at('src/cli/kubelet/volume-support.ts', "'unshare'", none),
  at('src/cli/kubelet/user-ids.ts', "'getsubids'", none),
  at('src/cli/run/kubelet-directories.ts', "'mount'", {
    ...none,
    check: 'the root directory as the kernel names it; mountArguments',
  }),
  at('src/cli/run/kubelet-directories.ts', "'umount'", { ...none, check: 'as above; umountArguments' }),
  at('src/cli/run/kubelet-directories.ts', 'file', handsOn),
  at('src/cli/down.ts', 'file', { ...none, check: 'hands on containerd/mounts.ts' }),
  at('src/cli/doctor/real-machine.ts', 'file', { ...none, check: 'hands on the checks of doctor' }),
  at('src/cli/doctor/checks/network.ts', 'iptables', { ...none, check: 'found on the PATH; --version' }),
  at('src/cli/doctor/checks/runtime.ts', 'path', { ...none, check: 'found on the PATH; --version' }),

  at('src/containerd/machine.ts', 'file', { ...none, check: 'hands on what is below' }),
  at('src/containerd/mounts.ts', "'mount'", inside),
  at('src/containerd/mounts.ts', "'umount'", inside),
  at('src/containerd/mounts.ts', "'losetup'", {
    outside: 'loop devices as the kernel names them',
    check: '-d takes the next argument whatever it is',
    end: 'own words first',
  }),
  at('src/containerd/network-links.ts', 'deps.ip', {
    outside: 'names of interfaces as the kernel lists them',
    check: 'behind dev, which takes the next argument whatever it is',
    end: 'own words first',
  }),
  at('src/containerd/iptables.ts', 'iptables', {
    outside: 'rules as iptables lists them, with what CNI plugins wrote into comments',
    check: 'splitArguments: as iptables quotes, each value behind its option',
    end: 'own words first',
  }),
  at('src/containerd/image-store.ts', 'ctr', { ...none, check: 'files and names of ours' }),
  at('src/containerd/image-store.ts', 'program', { ...none, check: 'busybox as found on the PATH; --list' }),
  at('src/containerd/launch.ts', 'file', { ...none, check: ofConfig }),
  at('src/containerd/prepare.ts', 'tools.containerd', { ...none, check: '--version' }),
  at('src/containerd/private-containerd.ts', '`/proc/${process.pid}/fd/${program.fd}`', {
    ...none,
    check: '--version',
  }),
  at('src/containerd/private-containerd.ts', 'ctr', { ...none, check: 'the socket is a path of ours' }),
];

const root = join(import.meta.dirname, '../..');
const starters = 'run|runCommand|runChecked|spawn|spawnSync|execFile|execFileSync|fork|command';
const first = `(?<program>'[^'\\n]*'|"[^"\\n]*"|\`[^\`\\n]*\`|[\\w.$]+)`;
/** Matches calls with a program and its arguments, and objects that contain both. */
const forms = [
  new RegExp(`(?<!function )(?:\\b|#)(?:${starters})\\(\\s*${first},\\s*(?:\\[|\\w*[aA]rg)`, 'g'),
  /\bfile(?::(?!\s*string\b)\s*(?<program>(?:[^,(){};]|\([^()]*\))+))?,\s*(?:\w+,\s*)*args\b/g,
];
/** Matches an object with a program whose arguments are added later. */
const later = /\bfile:\s*(?<program>'[^'\n]*'),\s*env\b/g;

export interface Found {
  readonly programs: ReadonlySet<string>;
  /** Whether the file can start programs itself. */
  readonly hasMeans: boolean;
}

export function startsIn(source: string): Found {
  const code = codeOnly(source);
  const hasMeans =
    importsOf(source).some(({ from }) => /^(?:node:)?(?:child_process|cluster)$/.test(from)) ||
    /\bimport\s*\{[^}]*\b(?:runCommand|runChecked)\b[^}]*\}/.test(code);
  const found = [...forms, later].flatMap((form) =>
    Array.from(code.matchAll(form), (match) => {
      const program = match.groups?.['program'];
      if (program === undefined) return 'file';
      const start = match.index + match[0].indexOf(program);
      return source.slice(start, start + program.length).trim();
    }),
  );
  return { programs: new Set(found), hasMeans };
}

/** Returns the sources except tests and the simulator, whose programs do not run in processes. */
export function sourcesOf(): readonly (readonly [string, string])[] {
  const files = globSync('src/**/*.ts', { cwd: root }).toSorted();
  return files
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => [file, readFileSync(join(root, file), 'utf8')] as const);
}
