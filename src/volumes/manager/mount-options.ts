import type { CommandResult } from '../../lib/index.ts';
import { hasControlCharacters, printableValue } from '../../lib/index.ts';
import { unusable } from '../projected/payload.ts';

const wholeOption = /^(?<name>[A-Za-z_][\w.-]*)(?:=(?<value>.*))?$/;
/** Printable ASCII without a blank, a comma, quotes and a backslash, which mount(8) reads as more than themselves. */
const plainValue = /^[!#$%&()*+\-./0-9:;<=>?@A-Z[\]^_a-z{|}~]*$/;
/** The text of a label, which may have commas if it is quoted as a whole. */
const quotedLabel = /^"[\w.:,-]*"$/;
/** The only options whose commas no file system takes for the end of an option. */
const labels: ReadonlySet<string> = new Set(['context', 'fscontext', 'defcontext', 'rootcontext']);
/**
 * Options to mount(8) and its helpers rather than to a file system. They would mount something else than the volume, set
 * up devices, read files of the host or name a program that umount(8) starts later.
 */
const ofMountItself =
  /^(?:r?bind|move|remount|loop|offset|sizelimit|encryption|u?helper|verity\..*|x-.*|subdir)$/i;
const longestOption = 4096;

/**
 * The options of a PersistentVolume, one by one. They are set by administrators of the cluster, so those of NFS and of file
 * systems stay as they are, also several in one entry, as in `hard,nfsvers=4.1`: the reference joins all entries with
 * commas, and mount(8) splits them, so they are split here in the same way and each is checked. Refused is what is no
 * `name` or `name=value`, and what is an option to mount(8) itself. Throws VOLUME_UNUSABLE.
 */
export function checkedMountOptions(options: readonly string[]): readonly string[] {
  const split = splitMountOptions(options);
  for (const option of split) checkOption(option);
  return split;
}

/** As mount(8) does: a comma inside double quotes does not end an option. */
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
  const { name, value = '' } = wholeOption.exec(option)?.groups ?? {};
  if (name === undefined) throw wrong('mountOptions', 'name or name=value', option);
  if (ofMountItself.test(name)) throw wrong('mountOptions', 'options of a file system', option);
  if (plainValue.test(value) || (labels.has(name) && quotedLabel.test(value))) return;
  throw wrong('mountOptions', 'without blanks, quotes, backslashes and control characters', option);
}

/**
 * Flags that a CSI driver gets. What they mean is up to the driver, for some they are arguments of a program with leading
 * hyphens and blanks, so that all is passed on but what no file of mounts and no command line could hold.
 */
export function checkedMountFlags(flags: readonly string[]): readonly string[] {
  for (const flag of flags)
    if (hasControlCharacters(flag)) throw wrong('mountOptions', 'without control characters', flag);
  return flags;
}

const fileSystemType = /^[a-z0-9][a-z0-9._-]{0,62}$/i;

/** It becomes part of the name of a program. Empty stays empty where that means the usual one. */
export function checkedFsType(fsType: string): string {
  if (fsType === '' || fileSystemType.test(fsType)) return fsType;
  throw wrong('fsType', 'letters, digits, ".", "_" and "-"', fsType);
}

/** `mount.fuse` has a shell start what comes after the dot. */
const programType = /^fuse(?:\.|$)/i;

/** As above, of a disk. */
export function checkedDiskType(fsType: string): string {
  if (fsType === '' || programType.test(fsType)) throw wrong('fsType', 'a file system of disks', fsType);
  return checkedFsType(fsType);
}

/** In the words for the pod's event. */
export function wrong(field: string, rule: string, value: string): Error {
  return unusable(`invalid ${field}: must be ${rule}: current value is ${printableValue(value)}`);
}

/** What a program said that did not end well, in one line; undefined for one that did. */
export function commandFailure({ end, stderr, stdout }: CommandResult): string | undefined {
  if (end.kind === 'exited' && end.code === 0) return undefined;
  const lines = `${stderr}${stdout}`.split('\n').map((line) => line.trim());
  const said = lines.filter((line) => line !== '').join('; ');
  return said === '' ? `it ended with ${end.kind === 'exited' ? `exit code ${end.code}` : end.by}` : said;
}
