import { describeError, KubelingError, type Logger } from '../../lib/index.ts';

/** The kernel tunables below /proc/sys, with the values that Kubernetes nodes require. */
const expected: ReadonlyMap<string, number> = new Map([
  ['vm/overcommit_memory', 1],
  ['vm/panic_on_oom', 0],
  ['kernel/panic', 10],
  ['kernel/panic_on_oops', 1],
  ['kernel/keys/root_maxkeys', 1_000_000],
  ['kernel/keys/root_maxbytes', 25_000_000],
]);

/** Reads and writes kernel tunables; both methods fail like the functions of `node:fs`. */
export interface TunableFiles {
  read(path: string): Promise<string>;
  write(path: string, text: string): Promise<void>;
}

export interface KernelTunablesDeps {
  readonly files: TunableFiles;
  readonly logger: Logger;
  /**
   * What happens to a tunable with another value than required: `refuse` reports an error, `set`
   * sets the required value.
   */
  readonly mismatch: 'refuse' | 'set';
  /** The directory of the kernel tunables, /proc/sys; replaced in tests. */
  readonly directory?: string;
}

/**
 * Sets the kernel tunables that pods require: memory overcommit, and a reboot after a kernel panic.
 * Failures are logged and tolerated. With protectKernelDefaults it only checks them, and throws
 * MACHINE_UNFIT with all that differ.
 */
export async function setupKernelTunables(deps: KernelTunablesDeps): Promise<void> {
  const differing: string[] = [];
  for (const [name, value] of expected) {
    const now = await readTunable(name, deps);
    if (now === undefined || now === value) continue;
    if (deps.mismatch === 'refuse')
      differing.push(`${dotted(name)} must be ${value}: current value is ${now}`);
    else await setTunable(name, { from: now, to: value }, deps);
  }
  if (differing.length === 0) return;
  throw new KubelingError(
    'MACHINE_UNFIT',
    `Cannot run pods on this machine as protectKernelDefaults forbids setting the kernel tunables that differ: ${differing.join('; ')}`,
    { details: { problems: differing } },
  );
}

async function readTunable(
  name: string,
  { files, logger, directory = '/proc/sys' }: KernelTunablesDeps,
): Promise<number | undefined> {
  try {
    return Number.parseInt(await files.read(`${directory}/${name}`), 10);
  } catch (error) {
    logger.warn('Failed to read kernel tunable', { sysctl: dotted(name), why: describeError(error) });
    return undefined;
  }
}

async function setTunable(
  name: string,
  { from, to }: { readonly from: number; readonly to: number },
  { files, logger, directory = '/proc/sys' }: KernelTunablesDeps,
): Promise<void> {
  const sysctl = dotted(name);
  try {
    await files.write(`${directory}/${name}`, String(to));
    logger.info('Set kernel tunable', { sysctl, from, to });
  } catch (error) {
    logger.warn('Failed to set kernel tunable', { sysctl, from, to, why: describeError(error) });
  }
}

function dotted(name: string): string {
  return name.replaceAll('/', '.');
}
