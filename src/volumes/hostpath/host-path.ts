import { unusable } from '../projected/payload.ts';

type HostFileKind = 'directory' | 'file' | 'socket' | 'character-device' | 'block-device' | 'other';

/** The file operations for hostPath volumes. */
export interface HostPathFiles {
  /** Returns what is at the path, following symbolic links; undefined for nothing. */
  kindBehind(path: string): Promise<HostFileKind | undefined>;
  /** Creates all parent directories. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** Creates an empty file, but not its directory. */
  makeFile(path: string, mode: number): Promise<void>;
}

export interface HostPath {
  readonly path: string;
  readonly type?: string | undefined;
}

const directoryMode = 0o755;
const fileMode = 0o644;

interface TypeRule {
  readonly kind: HostFileKind;
  /** The name of the type in messages. */
  readonly called: string;
}

const directory: TypeRule = { kind: 'directory', called: 'directory' };
const file: TypeRule = { kind: 'file', called: 'file' };

/** What must exist at the path, by hostPath type. */
const rules: ReadonlyMap<string, TypeRule> = new Map([
  ['DirectoryOrCreate', directory],
  ['Directory', directory],
  ['FileOrCreate', file],
  ['File', file],
  ['Socket', { kind: 'socket', called: 'socket file' }],
  ['CharDevice', { kind: 'character-device', called: 'character device' }],
  ['BlockDevice', { kind: 'block-device', called: 'block device' }],
]);

/**
 * Creates the path if its type allows that. Rejects with VOLUME_UNUSABLE if a path of another type
 * exists. A hostPath is never removed, so there is no reverse operation.
 */
export async function prepareHostPath(files: HostPathFiles, { path, type = '' }: HostPath): Promise<void> {
  if (path.split('/').includes('..')) throw unusable(`invalid HostPath \`${path}\`: must not contain '..'`);
  if (type === '') return;
  const rule = rules.get(type);
  if (rule === undefined) throw unusable(`${type} is an invalid volume type`);
  const kind = await files.kindBehind(path);
  if (kind === undefined && type === 'DirectoryOrCreate') await files.makeDirectory(path, directoryMode);
  else if (kind === undefined && type === 'FileOrCreate') await files.makeFile(path, fileMode);
  else if (kind !== rule.kind) throw unusable(`hostPath type check failed: ${path} is not a ${rule.called}`);
}
