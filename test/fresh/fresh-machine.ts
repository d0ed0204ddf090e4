import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CgroupParent } from './cgroup-parent.ts';

export interface FreshMachine {
  readonly root: string;
  readonly name: string;
  /**
   * The command to run; its program is looked up in the root file system, and its environment is
   * `env` only.
   */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface FreshMachineEnd {
  readonly code: number | string;
  /** The cgroups that remained after the last process had exited. */
  readonly cgroupsLeft: readonly string[];
}

const namespaces = ['--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup'];
const enter = fileURLToPath(new URL('enter.sh', import.meta.url));
const entryLimitMs = 60_000;

/**
 * Runs a command in a root file system as on a separate machine: with new namespaces of every kind,
 * a separate parent cgroup, and user-mode networking that reaches external hosts but not the
 * loopback addresses of this machine.
 */
export async function runOnFreshMachine(machine: FreshMachine): Promise<FreshMachineEnd> {
  const cgroups = new CgroupParent(machine.name);
  const child = startInNamespaces(machine, cgroups.procsFiles);
  let network: ChildProcess | undefined;
  const end = once(child, 'close');
  try {
    await entered(child);
    network = await startNetwork(child);
    child.stdin?.end([...cgroups.mountLines, 'go', ''].join('\n'));
    const [code, signal] = await end;
    return { code: code ?? signal, cgroupsLeft: cgroups.remove() };
  } finally {
    network?.kill();
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await end;
      cgroups.remove();
    }
  }
}

function startInNamespaces({ root, name, command, env }: FreshMachine, procsFiles: readonly string[]) {
  const join = procsFiles.map((file) => `echo $$ >'${file}'`).join(' && ');
  const clean = ['env', '-i', ...Object.entries(env).map(([key, value]) => `${key}=${value}`), ...command];
  const words = [...namespaces, '--fork', '--kill-child', '--', '/bin/sh', enter, root, name, ...clean];
  return spawn('/bin/sh', ['-c', `${join} && exec unshare "$@"`, 'sh', ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

/**
 * Forwards the output of the command; resolves with the line which shows that the namespaces exist.
 */
async function entered(child: ChildProcess): Promise<void> {
  if (child.stdout === null) throw new Error('Cannot read the output of unshare');
  const lines = createInterface({ input: child.stdout });
  const observed = new Promise<void>((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error('Cannot enter the root file system in time')),
      entryLimitMs,
    );
    lines.on('line', (line) => {
      if (line !== 'entered') return console.log(line);
      clearTimeout(late);
      resolve();
    });
    child.once('exit', (code) => reject(new Error(`Cannot enter the root file system: exit code ${code}`)));
  });
  await observed;
}

/** Resolves when the network interface has its address and route. */
async function startNetwork({ pid }: ChildProcess): Promise<ChildProcess> {
  const options = ['--configure', '--mtu=65520', '--disable-host-loopback', '--ready-fd=3'];
  const network = spawn('slirp4netns', [...options, `${pid}`, 'tap0'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const ready = network.stdio[3];
  if (ready === null || ready === undefined)
    throw new Error('Cannot read the ready descriptor of slirp4netns');
  const ended = once(network, 'close').then(() => {
    throw new Error('Cannot connect the fresh machine to the network: slirp4netns exited');
  });
  await Promise.race([once(ready, 'data'), ended]);
  ended.catch(() => {});
  return network;
}
