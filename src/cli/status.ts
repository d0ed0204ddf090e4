import type { CriClient } from '../cri/index.ts';
import {
  describeError,
  type FlagTable,
  formatFlagHelp,
  ProcessTable,
  readLockOwner,
  sendHttp,
  withDeadline,
} from '../lib/index.ts';
import { type Command, type CommandContext, exitCodes, outputFlag, readFlags } from './command.ts';
import {
  type DataDirectory,
  dataDirFlag,
  defaultDataDirectory,
  findDataDirectory,
  readUpState,
} from './data-directory/data-directory.ts';
import { connectRuntime, onlyOwnPods } from './data-directory/runtime.ts';

const flags = { 'data-dir': dataDirFlag, output: outputFlag } satisfies FlagTable;

const usage = `usage: kubeling status [flags]

Shows whether kubeling is up, which runtime it uses, where its API listens, and whether they are healthy. Exits with 1 when
it is not up, or when the runtime or the API does not respond.

${formatFlagHelp(flags).trimEnd()}`;

interface Status {
  readonly dataDir: string;
  /** The PID of the running kubeling; undefined if none runs. */
  readonly process: number | undefined;
  readonly runtime: string;
  readonly sandboxes: number | undefined;
  /** The state of the embedded API; undefined without one. */
  readonly api?: ApiStatus | undefined;
  readonly problem: string | undefined;
}

interface ApiStatus {
  readonly url: string;
  readonly kubeconfig: string;
  /** Why the API is not healthy; undefined if it is. */
  readonly problem: string | undefined;
}

const apiDeadlineMs = 5_000;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  const dataDir = values['data-dir'] ?? defaultDataDirectory;
  const directory = await findDataDirectory(dataDir);
  const status = directory === undefined ? nothing(dataDir) : await inspectDirectory(directory, context);
  context.stdout.write(values.output === 'json' ? `${JSON.stringify(status)}\n` : format(status));
  const isWell = status.problem === undefined && status.api?.problem === undefined;
  return status.process !== undefined && isWell ? exitCodes.done : exitCodes.failed;
}

function nothing(dataDir: string): Status {
  return { dataDir, process: undefined, runtime: 'none', sandboxes: undefined, problem: undefined };
}

async function inspectDirectory(directory: DataDirectory, context: CommandContext): Promise<Status> {
  const owner = await readLockOwner(directory.lockFile);
  const isUp = owner !== undefined && (await new ProcessTable().isAlive(owner));
  const base = { ...nothing(directory.dataDir), process: isUp ? owner.pid : undefined };
  const state = await readUpState(directory);
  if (state === undefined) return base;
  const api = state.api === undefined || !isUp ? {} : { api: await probeApi(state.api, context) };
  const unfiltered = connectRuntime(state.endpoint, context);
  const cri = onlyOwnPods(unfiltered, {
    directory,
    unnamed: state.runtime === 'private' ? 'ours' : 'of-others',
  });
  try {
    return { ...base, ...api, ...(await readStatus(cri, context.signal)) };
  } catch (error) {
    return { ...base, ...api, runtime: state.endpoint, problem: describeError(error) };
  } finally {
    cri.close();
  }
}

async function readStatus(
  cri: CriClient,
  signal: AbortSignal,
): Promise<Pick<Status, 'runtime' | 'sandboxes'>> {
  const version = await cri.checkVersion(signal);
  const { items } = await cri.listPodSandbox({ filter: { state: { state: 'SANDBOX_READY' } } }, signal);
  return { runtime: `${version.runtimeName} ${version.runtimeVersion}`, sandboxes: items.length };
}

/** Probes the API without verifying its certificate, because no secrets are sent. */
async function probeApi(
  { url, kubeconfig }: Pick<ApiStatus, 'url' | 'kubeconfig'>,
  { clock, signal }: CommandContext,
): Promise<ApiStatus> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const request = { scheme: 'https', host, port: Number(port), target: '/readyz', headers: [] } as const;
  try {
    const version = await withDeadline(
      { clock, ms: apiDeadlineMs, what: 'get a response from the API' },
      (inner) => sendHttp(request, 1_024, inner),
      signal,
    );
    const problem = version.status === 200 ? undefined : failedIn(version.body.toString());
    return { url, kubeconfig, problem };
  } catch (error) {
    signal.throwIfAborted();
    return { url, kubeconfig, problem: describeError(error) };
  }
}

/** Returns the messages of the failed health checks in a response. */
function failedIn(body: string): string {
  const failed = [...body.matchAll(/^\[-\]\S+ failed: (.*)$/gm)].map(([, why]) => why);
  return failed.length > 0 ? failed.join('; ') : body.trim();
}

function formatApi({ url, kubeconfig, problem }: ApiStatus): string {
  return problem === undefined
    ? `api        answers at ${url}, its kubeconfig is ${kubeconfig}`
    : `api        at ${url} is not healthy: ${problem}`;
}

function format(status: Status): string {
  const lines = [
    `kubeling   ${status.process === undefined ? 'is not up' : `is up, process ${status.process}`}, data in ${status.dataDir}`,
    `runtime    ${status.runtime}${status.problem === undefined ? '' : ` does not respond: ${status.problem}`}`,
    ...(status.api === undefined ? [] : [formatApi(status.api)]),
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
