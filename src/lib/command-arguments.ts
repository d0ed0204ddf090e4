import { KubelingError } from './errors.ts';

export interface MountArguments {
  /** Options of the mount(8) program itself; they must not contain external text. */
  readonly flags?: readonly string[];
  readonly type?: string;
  readonly options?: readonly string[];
  /** The device or directory to mount; omitted when only properties of the target change. */
  readonly source?: string;
  readonly target: string;
}

const maxShownLength = 100;

/**
 * The arguments for mount(8). After `--` mount(8) itself reads no options, but it calls
 * `mount.<type>` with the source as first argument and without `--`, so a source with a leading
 * hyphen is rejected.
 */
export function mountArguments(call: MountArguments): readonly string[] {
  const { flags = [], type, options = [], source, target } = call;
  const sources =
    source === undefined ? [] : [source.startsWith('/') ? source : plainArgument('mount', source)];
  return [
    ...flags,
    ...(type === undefined ? [] : ['-t', plainArgument('mount', type)]),
    ...(options.length === 0 ? [] : ['-o', plainArgument('mount', options.join(','))]),
    '--',
    ...sources,
    absoluteArgument('mount', target),
  ];
}

export function umountArguments(flags: readonly string[], target: string): readonly string[] {
  return [...flags, '--', absoluteArgument('umount', target)];
}

/**
 * Returns an absolute path, which no program interprets as an option, whether or not it supports
 * `--`. Throws COMMAND_FAILED for any other path. Line feeds are allowed: containers may give
 * directories such names, and mounts in them must be unmounted.
 */
export function absoluteArgument(program: string, path: string): string {
  if (path.startsWith('/')) return path;
  throw rejectedArgument(program, 'a path must be absolute', path);
}

/**
 * Throws COMMAND_FAILED for an argument that a program could interpret as an option or as several
 * lines.
 */
export function plainArgument(program: string, text: string): string {
  if (text.startsWith('-')) throw rejectedArgument(program, 'an argument must not start with a hyphen', text);
  if (hasControlCharacters(text))
    throw rejectedArgument(program, 'an argument must not contain control characters', text);
  return text;
}

export function hasControlCharacters(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

/** An external value as shown in a message: quoted, on one line, and truncated. */
export function printableValue(text: string): string {
  const cut = text.length > maxShownLength ? `${text.slice(0, maxShownLength)}...` : text;
  return JSON.stringify(cut);
}

function rejectedArgument(program: string, rule: string, value: string): KubelingError {
  return new KubelingError(
    'COMMAND_FAILED',
    `Cannot run ${program} as ${rule}: current value is ${printableValue(value)}`,
  );
}

/**
 * Removes control characters of terminals from external text: C0 except tab and newline, DEL, and
 * C1. Output of containers, runtimes and other users' processes is shown to administrators.
 */
export function stripControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '').toWellFormed();
}
