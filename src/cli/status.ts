import type { CriClient } from '../cri/index.ts';
import { describeError, type FlagTable, formatFlagHelp, ProcessTable, readLockOwner } from '../lib/index.ts';
import { type Command, type CommandContext, exitCodes } from './command.ts';
import { outputFlag, readFlags } from './command-flags.ts';
import { dataDirFlag, defaultDataDirectory, findHome, type Home, readUpState } from './home.ts';
import { connectRuntime } from './private-runtime.ts';

const flags = { 'data-dir': dataDirFlag, output: outputFlag } satisfies FlagTable;

const usage = `usage: kubeling status [flags]

Shows whether a kubeling is up here, which runtime it uses, and how that is. Exits with 1 when it is not up or the
runtime does not answer.

${formatFlagHelp(flags).trimEnd()}`;

interface Status {
  readonly dataDir: string;
  /** The process that is up, if any. */
  readonly process: number | undefined;
  readonly runtime: string;
  readonly sandboxes: number | undefined;
  readonly problem: string | undefined;
}

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  const dataDir = values['data-dir'] ?? defaultDataDirectory;
  const home = await findHome(dataDir);
  const status = home === undefined ? nothing(dataDir) : await look(home, context);
  context.stdout.write(values.output === 'json' ? `${JSON.stringify(status)}\n` : format(status));
  return status.process !== undefined && status.problem === undefined ? exitCodes.done : exitCodes.failed;
}

function nothing(dataDir: string): Status {
  return { dataDir, process: undefined, runtime: 'none', sandboxes: undefined, problem: undefined };
}

async function look(home: Home, context: CommandContext): Promise<Status> {
  const owner = await readLockOwner(home.lockFile);
  const isUp = owner !== undefined && (await new ProcessTable().isAlive(owner));
  const base = { ...nothing(home.dataDir), process: isUp ? owner.pid : undefined };
  const state = await readUpState(home);
  if (state === undefined) return base;
  const cri = connectRuntime(state.endpoint, context);
  try {
    return { ...base, ...(await ask(cri, context.signal)) };
  } catch (error) {
    return { ...base, runtime: state.endpoint, problem: describeError(error) };
  } finally {
    cri.close();
  }
}

async function ask(cri: CriClient, signal: AbortSignal): Promise<Pick<Status, 'runtime' | 'sandboxes'>> {
  const version = await cri.checkVersion(signal);
  const { items } = await cri.listPodSandbox({ filter: { state: { state: 'SANDBOX_READY' } } }, signal);
  return { runtime: `${version.runtimeName} ${version.runtimeVersion}`, sandboxes: items.length };
}

function format(status: Status): string {
  const lines = [
    `kubeling   ${status.process === undefined ? 'is not up' : `is up, process ${status.process}`}, data in ${status.dataDir}`,
    `runtime    ${status.runtime}${status.problem === undefined ? '' : ` does not answer: ${status.problem}`}`,
    ...(status.sandboxes === undefined ? [] : [`pods       ${status.sandboxes} running`]),
  ];
  return `${lines.join('\n')}\n`;
}

export const command: Command = {
  name: 'status',
  summary: 'show what kubeling runs on this machine',
  usage,
  run,
};
