import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from './host.mjs';

/**
 * The tools kubeling needs from the operating system. A tool counts as installed if its command or
 * file exists, whatever installed it. `for` lists the purposes that need the entry; `['test']`
 * marks what only the tests need. `units` are the systemd units that the package enables; the set-up
 * disables them if it installed the package.
 */
export const systemPackages = [
  {
    packages: names('containerd'),
    present: { commands: ['containerd'] },
    what: 'container runtime',
    service: 'containerd',
    units: ['containerd.service'],
    for: ['start', 'test'],
  },
  {
    packages: names('runc'),
    present: { commands: ['runc'] },
    what: 'starts the processes of containers',
    service: 'containerd',
    for: ['start', 'test'],
  },
  {
    packages: {
      ...names('cni-plugins'),
      apt: 'containernetworking-plugins',
      dnf: 'containernetworking-plugins',
    },
    present: { anyFile: ['/usr/lib/cni/bridge', '/opt/cni/bin/bridge', '/usr/libexec/cni/bridge'] },
    what: 'network of pods (CNI plugins bridge, host-local, portmap, loopback)',
    for: ['start', 'test'],
  },
  {
    packages: { ...names('iptables'), dnf: 'iptables-nft' },
    present: { commands: ['iptables'] },
    what: 'address translation for pods',
    for: ['start', 'test'],
  },
  {
    packages: { ...names('iproute2'), dnf: 'iproute' },
    present: { commands: ['ip'] },
    what: 'network interfaces and namespaces',
    for: ['start', 'test'],
  },
  {
    packages: { ...names('util-linux'), apt: 'mount' },
    present: { commands: ['mount', 'umount'] },
    what: 'volumes of pods',
    for: ['start', 'test', 'fresh'],
  },
  {
    packages: names('util-linux'),
    present: { commands: ['findmnt', 'nsenter'] },
    what: 'looking at mounts, entering the namespaces of pods',
    for: ['start', 'test'],
  },
  {
    packages: { ...names('busybox-static'), dnf: 'busybox', pacman: 'busybox' },
    present: { commands: ['busybox'], linked: 'static' },
    what: 'contents of the images made on this machine',
    // Debian's busybox and busybox-static are the same tool and exclude each other.
    replaces: 'busybox',
    for: ['start', 'test'],
  },
  {
    packages: { ...names('libatomic'), apt: 'libatomic1', pacman: 'gcc-libs', zypper: 'libatomic1' },
    present: { anyFile: libraryPlaces('libatomic.so.1') },
    what: 'library of the pinned Node.js',
    for: ['start', 'test', 'fresh'],
  },
  {
    packages: { ...names('docker-registry'), dnf: 'docker-distribution', zypper: 'distribution-registry' },
    present: { commands: ['docker-registry'] },
    what: 'registry that the tests of image pulls run on loopback',
    units: ['docker-registry.service'],
    for: ['test'],
  },
  {
    packages: names('skopeo'),
    present: { commands: ['skopeo'] },
    what: 'putting images into that registry',
    for: ['test'],
  },
  {
    packages: names('openssl'),
    present: { commands: ['openssl'] },
    what: 'certificates of that registry',
    for: ['test'],
  },
  {
    packages: { ...names('e2fsprogs'), dnf: 'e2fsprogs', apk: 'e2fsprogs e2fsprogs-extra' },
    present: { commands: ['mkfs.ext4', 'resize2fs', 'debugfs', 'chattr', 'lsattr'] },
    what: 'ext4 on the disks of the tests',
    units: ['e2scrub_all.timer', 'e2scrub_reap.service'],
    for: ['test'],
  },
  {
    packages: { ...names('xfsprogs'), apk: 'xfsprogs xfsprogs-extra' },
    present: { commands: ['mkfs.xfs', 'xfs_growfs'] },
    what: 'XFS on the disks of the tests',
    units: ['xfs_scrub_all.timer'],
    for: ['test'],
  },
  {
    packages: { ...names('quota'), apk: 'quota-tools', pacman: 'quota-tools' },
    present: { commands: ['setquota', 'repquota'] },
    what: 'size limits of emptyDir volumes, where the kernel has project quotas',
    for: ['test'],
  },
  {
    packages: { ...names('dbus'), apt: 'dbus-daemon', dnf: 'dbus-daemon', zypper: 'dbus-1-daemon' },
    present: { commands: ['dbus-daemon'] },
    what: 'message bus of the tests of logind and systemd',
    for: ['test'],
  },
  {
    packages: names('systemd'),
    present: { commands: ['systemd-inhibit', 'systemd-notify', 'systemd-analyze'] },
    what: 'clients of logind and systemd, also where another init runs (16 MiB on Debian 12)',
    for: ['test'],
  },
  {
    packages: names('libfaketime'),
    present: { anyFile: libraryPlaces('faketime/libfaketime.so.1') },
    what: 'steps of the wall clock in tests',
    for: ['test'],
  },
  {
    packages: { ...names('python3'), apt: 'python3-minimal', pacman: 'python' },
    present: { commands: ['python3'] },
    what: 'receiver of datagrams with credentials, which Node.js lacks',
    for: ['test'],
  },
  {
    packages: names('mmdebstrap'),
    present: { commands: ['mmdebstrap'] },
    what: 'root file systems of fresh machines',
    for: ['fresh'],
  },
  {
    packages: names('slirp4netns'),
    present: { commands: ['slirp4netns'] },
    what: 'network of fresh machines',
    for: ['fresh'],
  },
];

function libraryPlaces(name) {
  const directories = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib'];
  return directories.map((directory) => `${directory}/${name}`);
}

function names(name) {
  return { apt: name, dnf: name, apk: name, pacman: name, zypper: name };
}

export function missingPackages(host, purpose) {
  return systemPackages.filter((entry) => entry.for.includes(purpose) && !isPresent(host, entry.present));
}

function isPresent(host, present) {
  if (present.anyFile !== undefined) return present.anyFile.some((path) => existsSync(join(host.root, path)));
  return present.commands.every((name) => {
    const path = findCommand(host, name);
    return path !== undefined && (present.linked !== 'static' || isStatic(path));
  });
}

const programHeaderInterpreter = 3;

/**
 * Whether a 64-bit ELF file needs no dynamic loader. Scripts and unreadable files do not count as
 * static programs.
 */
export function isStatic(path) {
  const head = Buffer.alloc(4096);
  try {
    const file = openSync(path, 'r');
    try {
      readSync(file, head, 0, head.length, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    return false;
  }
  if (head.readUInt32BE(0) !== 0x7f454c46) return false;
  const offset = Number(head.readBigUInt64LE(32));
  const size = head.readUInt16LE(54);
  const types = Array.from({ length: head.readUInt16LE(56) }, (_, index) => offset + index * size)
    .filter((at) => at + 4 <= head.length)
    .map((at) => head.readUInt32LE(at));
  return !types.includes(programHeaderInterpreter);
}

/**
 * Names a containerd process of this machine, or returns undefined. Only a process that root runs
 * in our PID namespace counts: any user, and any container, can start a program with this name.
 */
export function runningContainerd(host) {
  const proc = join(host.root, 'proc');
  for (const pid of readdirSync(proc).filter((name) => /^\d+$/.test(name))) {
    try {
      const directory = join(proc, pid);
      if (
        readFileSync(join(directory, 'comm'), 'utf8').trim() === 'containerd' &&
        isHostRoot(proc, directory)
      ) {
        return `process ${pid}, ${executableOf(directory)}`;
      }
    } catch {
      // The process exited before its files were read: try the next process.
    }
  }
  return undefined;
}

function isHostRoot(proc, directory) {
  if (!/^Uid:\t0\t0\t0\t0$/m.test(readFileSync(join(directory, 'status'), 'utf8'))) return false;
  return readlinkSync(join(directory, 'ns/pid')) === readlinkSync(join(proc, 'self/ns/pid'));
}

function executableOf(directory) {
  try {
    // A file name may contain any characters, including terminal escape sequences, so all but
    // printable ASCII characters are replaced.
    return readlinkSync(join(directory, 'exe')).replace(/[^\x20-\x7e]/g, '?');
  } catch {
    return 'containerd';
  }
}

const families = [
  { manager: 'apt', like: ['debian', 'ubuntu'], install: 'apt-get install --no-install-recommends' },
  { manager: 'dnf', like: ['fedora', 'rhel', 'centos'], install: 'dnf install' },
  { manager: 'apk', like: ['alpine'], install: 'apk add' },
  { manager: 'pacman', like: ['arch'], install: 'pacman -S --needed' },
  { manager: 'zypper', like: ['suse', 'opensuse', 'sles'], install: 'zypper install' },
];

/** The distribution family according to os-release; undefined for an unsupported distribution. */
export function familyOf(host) {
  let text = '';
  try {
    text = readFileSync(join(host.root, 'etc/os-release'), 'utf8');
  } catch {
    return undefined;
  }
  const value = (key) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1]?.replaceAll('"', '') ?? '';
  const ids = `${value('ID')} ${value('ID_LIKE')}`.split(/\s+/);
  return families.find((family) => family.like.some((name) => ids.includes(name)));
}

/**
 * Lists the missing tools, their purpose and the command that installs them, for runs that may not
 * or cannot install packages.
 */
export function explainMissing(host, missing) {
  const family = familyOf(host);
  const manager = family?.manager ?? 'apt';
  const why =
    family?.manager === 'apt' && host.uid !== 0
      ? 'installing packages needs root'
      : 'they are installed automatically on Debian and its relatives only';
  const list = missing.map((entry) => `  ${describePresence(entry.present).padEnd(22)} ${entry.what}`);
  const packages = [...new Set(missing.map((entry) => entry.packages[manager]))].join(' ');
  const sudo = host.uid === 0 ? '' : 'sudo ';
  const how =
    family === undefined
      ? `Get them with the package manager of your distribution; on Debian the packages are:\n  ${packages}`
      : `Get them with:\n  ${sudo}${family.install} ${packages}`;
  return `Cannot install the tools missing here, as ${why}. Missing:\n${list.join('\n')}\n${how}\nand run this again.`;
}

function describePresence(present) {
  if (present.anyFile !== undefined) return present.anyFile[0];
  return present.commands.join(', ') + (present.linked === 'static' ? ' (static)' : '');
}
