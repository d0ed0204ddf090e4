import type { CommandResult } from '../../lib/index.ts';
import { hasControlCharacters, printableValue } from '../../lib/index.ts';
import { unusable } from '../projected/payload.ts';

const optionPattern = /^(?<name>[A-Za-z_][\w.-]*)(?:=(?<value>.*))?$/;
/** Printable ASCII except blanks, commas, quotes and backslashes, which mount(8) interprets. */
const plainValue = /^[!#$%&()*+\-./0-9:;<=>?@A-Z[\]^_a-z{|}~]*$/;
/** The value of an SELinux label option, which may contain commas in quotes. */
const quotedLabel = /^"[\w.:,-]*"$/;
/** The only mount options whose values may contain commas. */
const labels: ReadonlySet<string> = new Set(['context', 'fscontext', 'defcontext', 'rootcontext']);
/**
 * Options of mount(8) and its helpers rather than of a file system. They would mount something
 * else, set up devices, read host files or name a program that umount(8) starts later.
 */
const ofMountItself =
  /^(?:r?bind|move|remount|loop|offset|sizelimit|encryption|u?helper|verity\..*|x-.*|subdir)$/i;
const longestOption = 4096;

/**
 * Splits and validates the mount options of a PersistentVolume. Cluster administrators set them, so
 * the options of NFS and of file systems are passed unchanged, also several in one entry as in
 * `hard,nfsvers=4.1`: the Go kubelet joins all entries with commas and mount(8) splits them, so
 * they are split here in the same way and each is validated. Rejects options that are not `name` or
 * `name=value`, and options of mount(8) itself. Throws VOLUME_UNUSABLE.
 */
export function checkedMountOptions(options: readonly string[]): readonly string[] {
  const split = splitMountOptions(options);
  for (const option of split) checkOption(option);
  return split;
}

/** As in mount(8), a comma in double quotes does not end an option. */
export function splitMountOptions(options: readonly string[]): readonly string[] {
  const found: string[] = [];
  let [from, isQuoted] = [0, false];
  const text = options.join(',');
  for (let at = 0; at <= text.length; at++) {
    if (text[at] === '"') isQuoted = !isQuoted;
    const isEnd = at === text.length || (text[at] === ',' && !isQuoted);
    if (!isEnd) continue;
    if (at > from) found.push(text.slice(from, at));
    from = at + 1;
  }
  return found;
}

function checkOption(option: string): void {
  if (option.length > longestOption)
    throw wrong('mountOptions', `at most ${longestOption} characters long`, option);
  const { name, value = '' } = optionPattern.exec(option)?.groups ?? {};
  if (name === undefined) throw wrong('mountOptions', 'name or name=value', option);
  if (ofMountItself.test(name)) throw wrong('mountOptions', 'options of a file system', option);
  if (plainValue.test(value) || (labels.has(name) && quotedLabel.test(value))) return;
  throw wrong('mountOptions', 'without blanks, quotes, backslashes and control characters', option);
}

/**
 * Validates the flags for a CSI driver. Their meaning is up to the driver; some drivers use them as
 * program arguments with leading hyphens and blanks, so only values are rejected that no mount
 * table or command line can contain.
 */
export function checkedMountFlags(flags: readonly string[]): readonly string[] {
  for (const flag of flags)
    if (hasControlCharacters(flag)) throw wrong('mountOptions', 'without control characters', flag);
  return flags;
}

const fileSystemType = /^[a-z0-9][a-z0-9._-]{0,62}$/i;

/**
 * Validates a file system type, which becomes part of the name of a mount program. An empty type is
 * accepted and means the default.
 */
export function checkedFsType(fsType: string): string {
  if (fsType === '' || fileSystemType.test(fsType)) return fsType;
  throw wrong('fsType', 'letters, digits, ".", "_" and "-"', fsType);
}

/** Matches FUSE types: `mount.fuse` starts the part after the dot in a shell. */
const programType = /^fuse(?:\.|$)/i;

/** Validates the file system type of a disk: neither empty nor FUSE. */
export function checkedDiskType(fsType: string): string {
  if (fsType === '' || programType.test(fsType)) throw wrong('fsType', 'a file system of disks', fsType);
  return checkedFsType(fsType);
}

/** Builds the message of the pod event for an invalid volume field. */
export function wrong(field: string, rule: string, value: string): Error {
  return unusable(`invalid ${field}: must be ${rule}: current value is ${printableValue(value)}`);
}

/** Returns the output of a failed program in one line; undefined if it succeeded. */
export function commandFailure({ end, stderr, stdout }: CommandResult): string | undefined {
  if (end.kind === 'exited' && end.code === 0) return undefined;
  const lines = `${stderr}${stdout}`.split('\n').map((line) => line.trim());
  const message = lines.filter((line) => line !== '').join('; ');
  return message === ''
    ? `it ended with ${end.kind === 'exited' ? `exit code ${end.code}` : end.by}`
    : message;
}
