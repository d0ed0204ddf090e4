import { readdir, readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';

export interface Mount {
  readonly mountPoint: string;
  /** The device number, which all mounts of one file system share. */
  readonly device: string;
  /** The directory of the file system that is visible at the mount point. */
  readonly root: string;
  /** Whether mounts below the mount point propagate to the other mounts of its peer group. */
  readonly isShared: boolean;
  readonly fsType: string;
  /** The options of the file system, not of the mount; for cgroups they name the controllers. */
  readonly superOptions: readonly string[];
}

/**
 * Fields before the hyphen in a line: id, parent, device, root, mount point, options; optional
 * fields may follow.
 */
const minFieldsBefore = 6;
/** Fields after the hyphen in a line: type, source, options of the file system. */
const minFieldsAfter = 3;
const deletedMark = ' (deleted)';
const maxReads = 10;
const mountinfoPath = '/proc/self/mountinfo';

/**
 * Parses the text of /proc/self/mountinfo; octal escapes in paths are decoded. Truncated lines are
 * skipped.
 */
export function parseMountinfo(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => parseLine(line) ?? []);
}

function parseLine(line: string): Mount | undefined {
  const [before = '', after = ''] = line.split(' - ');
  const fields = before.split(' ');
  const described = after.split(' ');
  if (fields.length < minFieldsBefore || described.length < minFieldsAfter) return undefined;
  const [fsType = '', , superOptions = ''] = described;
  return {
    device: fields[2] ?? '',
    root: unescapePath(fields[3] ?? ''),
    mountPoint: withoutMark(unescapePath(fields[4] ?? '')),
    isShared: fields.slice(minFieldsBefore).some((field) => field.startsWith('shared:')),
    fsType,
    superOptions: optionsIn(superOptions),
  };
}

/**
 * The last parsed mount table. The table is long, read often, and mostly unchanged, so only new
 * lines are parsed.
 */
class LastTable {
  #text = '';
  #mounts: readonly Mount[] = [];
  #lines: ReadonlyMap<string, Mount | undefined> = new Map();

  parse(text: string): readonly Mount[] {
    if (text === this.#text) return this.#mounts;
    const lines = new Map<string, Mount | undefined>();
    for (const line of text.split('\n'))
      lines.set(line, this.#lines.has(line) ? this.#lines.get(line) : parseLine(line));
    this.#text = text;
    this.#lines = lines;
    this.#mounts = [...lines.values()].filter((mount) => mount !== undefined);
    return this.#mounts;
  }
}

const lastTable = new LastTable();

/**
 * Reads the mounts of this process in the order of their creation. Kernels before 5.8 may omit
 * entries while mounts change: there the table is read until two reads are equal.
 */
export async function readMountTable(
  read: (path: string) => Promise<string>,
  kernel = release(),
): Promise<readonly Mount[]> {
  let text = await read(mountinfoPath);
  for (let left = maxReads - 1; left > 0 && mayTear(kernel); left--) {
    const again = await read(mountinfoPath);
    if (again === text) break;
    text = again;
  }
  return lastTable.parse(text);
}

/**
 * The mount that contains a path: the one with the deepest mount point; of several mounts at this
 * mount point, the last.
 */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  const holds = ({ mountPoint }: Mount) =>
    mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`);
  return mounts.filter(holds).reduce<Mount | undefined>((best, next) => {
    return best !== undefined && best.mountPoint.length > next.mountPoint.length ? best : next;
  }, undefined);
}

function mayTear(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  return major < 5 || (major === 5 && minor < 8);
}

/** The kernel escapes only space, tab, newline, backslash and the number sign. */
function unescapePath(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/**
 * The kernel adds a suffix to the path of a mount point whose directory was deleted; unmounting
 * needs the path without it.
 */
function withoutMark(path: string): string {
  return path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path;
}

/** A comma inside quotes belongs to the option, as in SELinux labels. */
function optionsIn(text: string): readonly string[] {
  return text.match(/(?:"[^"]*"|[^,"])+/g) ?? [''];
}

/**
 * The paths of the loop devices with this backing file. The path must be free of symbolic links.
 */
export async function loopDevicesOf(path: string, sysDir = '/sys'): Promise<readonly string[]> {
  const block = join(sysDir, 'block');
  const names = ((await readdir(block).catch(rethrowUnlessMissingDevice)) ?? []).filter((name) =>
    name.startsWith('loop'),
  );
  const found: string[] = [];
  for (const name of names) {
    const held = await readFile(join(block, name, 'loop/backing_file'), 'utf8').catch(
      rethrowUnlessMissingDevice,
    );
    if (held?.trimEnd() === path) found.push(`/dev/${name}`);
  }
  return found;
}

/**
 * The loop device was removed after the devices were listed and before its backing file was read.
 */
function rethrowUnlessMissingDevice(error: unknown): undefined {
  if (!['ENOENT', 'ENXIO', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
}

/** The mount points in one read of the mount table. */
export class MountPoints {
  readonly all: readonly string[];
  readonly #sorted: readonly string[];

  constructor(all: readonly string[]) {
    this.all = all;
    this.#sorted = all.toSorted();
  }

  /** Whether there is a mount below a directory. */
  isAnyBelow(directory: string): boolean {
    const begin = `${directory}/`;
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? '') < begin) low = middle + 1;
      else high = middle;
    }
    return this.#sorted[low]?.startsWith(begin) === true;
  }
}
