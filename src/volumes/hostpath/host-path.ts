import { unusable } from '../projected/payload.ts';

type HostFileKind = 'directory' | 'file' | 'socket' | 'character-device' | 'block-device' | 'other';

/** File operations for hostPath volumes. */
export interface HostPathFiles {
  /**
   * Returns the type of the file at the path, following symbolic links; undefined for a missing
   * path.
   */
  kindBehind(path: string): Promise<HostFileKind | undefined>;
  /** Creates a directory with all parent directories. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** Creates an empty file, but not its parent directory. */
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
  /** Name of the hostPath type in error messages. */
  readonly called: string;
}

const directory: TypeRule = { kind: 'directory', called: 'directory' };
const file: TypeRule = { kind: 'file', called: 'file' };

/** Requirements for the path, by hostPath type. */
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
 * Creates the path when its type allows that. Rejects with VOLUME_UNUSABLE when a path of another
 * type exists. The path is never removed.
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
