import { readdir, readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';

export interface Mount {
  readonly mountPoint: string;
  /** Its numbers: the same for all mounts of one file system. */
  readonly device: string;
  /** The directory of the mounted file system that is visible there. */
  readonly root: string;
  /** Whether what is mounted below it is seen wherever else it is mounted. */
  readonly isShared: boolean;
  readonly fsType: string;
  /** Those of the file system, not of the mount: for cgroups the controllers. */
  readonly superOptions: readonly string[];
}

/** Of those before the hyphen: id, parent, device, root, mount point, options; then any number of others. */
const minFieldsBefore = 6;
/** Type, source, options of the file system. */
const minFieldsAfter = 3;
const deletedMark = ' (deleted)';
const maxReads = 10;
const mountinfoPath = '/proc/self/mountinfo';

/** Reads the text of /proc/self/mountinfo; spaces and the like in paths stand there as octal escapes. Lines cut short are left out. */
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

/** The table that was read last. It is long, read often, and mostly the same: only lines that are new are parsed. */
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
 * The mounts this process sees, in the order they were made. Kernels before 5.8 may leave some out while others come and
 * go: there the table is read until it is the same twice.
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

/** The one a path is on: the deepest, and of several at one place the last. */
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

/** Only ASCII is ever escaped: blank, tab, newline, backslash and the number sign. */
function unescapePath(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Said of a mount point whose directory is gone; it is unmounted under its name. */
function withoutMark(path: string): string {
  return path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path;
}

/** A comma in quotes belongs to the option, as in labels of SELinux. */
function optionsIn(text: string): readonly string[] {
  return text.match(/(?:"[^"]*"|[^,"])+/g) ?? [''];
}

/** The loop devices whose content is what is at the path, which is as the kernel has it, without links. */
export async function loopDevicesOf(path: string, sysDir = '/sys'): Promise<readonly string[]> {
  const block = join(sysDir, 'block');
  const names = ((await readdir(block).catch(rethrowUnlessDeviceGone)) ?? []).filter((name) =>
    name.startsWith('loop'),
  );
  const found: string[] = [];
  for (const name of names) {
    const held = await readFile(join(block, name, 'loop/backing_file'), 'utf8').catch(
      rethrowUnlessDeviceGone,
    );
    if (held?.trimEnd() === path) found.push(`/dev/${name}`);
  }
  return found;
}

/** A device may also go while it is looked at. */
function rethrowUnlessDeviceGone(error: unknown): undefined {
  if (!['ENOENT', 'ENXIO', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
}
