import { unusable } from '../projected/payload.ts';

type HostFileKind = 'directory' | 'file' | 'socket' | 'character-device' | 'block-device' | 'other';

/** The machine's files as far as paths of the host need them. */
export interface HostPathFiles {
  /** What is there, at the far end of a link too; undefined for nothing. */
  kindBehind(path: string): Promise<HostFileKind | undefined>;
  /** With all directories above it. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** Makes an empty file, not its directory. */
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
  /** As the message calls it. */
  readonly called: string;
}

const directory: TypeRule = { kind: 'directory', called: 'directory' };
const file: TypeRule = { kind: 'file', called: 'file' };

/** What must be at the path of the host, by the type the volume gives. */
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
 * Makes what the type of a path lets make. Rejects with VOLUME_UNUSABLE for what is there and of another type. Nothing
 * is ever taken away from a path of the host, so there is no way back.
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
