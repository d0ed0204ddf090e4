import { formatFlagHelp, KubelingError, listFlag, onAbort, stringFlag } from '../../lib/index.ts';
import { portForwardProtocol } from '../../server/index.ts';
import { type Command, type CommandContext, exitCodes } from '../command.ts';
import { kubeletFlags } from '../kubelet-port.ts';
import { choosePod, parseCommandLine } from './choose-pod.ts';
import { findKubelet } from './kubelet-client.ts';
import { type ForwardedPort, PortForwarder, readForwardedPort } from './port-forwarder.ts';

const flags = {
  address: {
    kind: listFlag(stringFlag),
    help: 'Local addresses to listen on; "localhost" is both loopback addresses.',
    default: 'localhost',
  },
  namespace: { kind: stringFlag, short: 'n', help: 'The namespace of the pod; any by default.' },
  ...kubeletFlags,
};

const usage = `usage: kubeling port-forward POD [LOCAL:]REMOTE... [flags]

Forwards local ports to a running pod until Ctrl-C, which exits with 0. ":80" uses any free local port.

${formatFlagHelp(flags).trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const { values, positionals } = parseCommandLine(flags, context.argv);
  const [key, ...written] = positionals;
  if (key === undefined || written.length === 0) {
    throw new KubelingError(
      'CLI_USAGE',
      'Name one pod and its ports: kubeling port-forward POD [LOCAL:]REMOTE...',
    );
  }
  const { clock, signal, stdout, stderr } = context;
  const kubelet = await findKubelet(values, context);
  const pod = choosePod(await kubelet.pods(signal), key, values.namespace);
  const ports = written.map((each) => readForwardedPort(each, pod));
  const path = `/portForward/${encodeURIComponent(pod.metadata.namespace)}/${encodeURIComponent(pod.metadata.name)}`;
  // An unreachable pod is reported now, not with the first connection.
  (await kubelet.open(path, portForwardProtocol, signal)).close();
  await using forwarder = new PortForwarder({
    clock,
    open: (protocol, inner) => kubelet.open(path, protocol, inner),
    print: (text) => stdout.write(`${text}\n`),
    warn: (text) => stderr.write(`${text}\n`),
  });
  for (const port of ports) await listen(forwarder, values.address ?? ['localhost'], port, context);
  await new Promise<void>((resolve) => onAbort(signal, () => resolve()));
  return exitCodes.done;
}

async function listen(
  forwarder: PortForwarder,
  addresses: readonly string[],
  port: ForwardedPort,
  { stdout }: CommandContext,
): Promise<void> {
  let { local } = port;
  const failures: unknown[] = [];
  const wanted = addresses.flatMap((each) => (each === 'localhost' ? ['127.0.0.1', '::1'] : [each]));
  for (const address of wanted) {
    try {
      // The second address uses the port that the first one got.
      local = await forwarder.listen(address, { ...port, local });
      stdout.write(
        `Forwarding from ${address.includes(':') ? `[${address}]` : address}:${local} -> ${port.remote}\n`,
      );
    } catch (error) {
      if (!isOptional(address, addresses)) throw error;
      failures.push(error);
    }
  }
  if (failures.length === wanted.length) throw failures[0];
}

/** A machine without IPv6 has a localhost too. */
function isOptional(address: string, addresses: readonly string[]): boolean {
  return address === '::1' && !addresses.includes('::1');
}

export const command: Command = {
  name: 'port-forward',
  summary: 'forward local ports to a pod',
  usage,
  run,
};
