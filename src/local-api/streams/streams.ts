import { describeError } from '../../lib/index.ts';
import { StatusError } from '../api/index.ts';
import { logAuditEvent } from '../security/audit.ts';
import { forwardUpgrade, type StreamTarget, streamTarget } from './commands.ts';
import type { StreamCall, Streams, StreamsDeps } from './deps.ts';
import { answerLog, upgradeLog } from './logs.ts';
import { answerProxy, upgradeProxy } from './proxy.ts';
import { badRequest } from './refusals.ts';

const served: Readonly<Record<string, ReadonlySet<string>>> = {
  pods: new Set(['log', 'exec', 'attach', 'portforward', 'proxy']),
  nodes: new Set(['proxy']),
  services: new Set(['proxy']),
};

/** Handles authorized streaming and proxy requests. */
export function createStreams(deps: StreamsDeps): Streams {
  return {
    serves: ({ resource }, subresource) =>
      resource.group === '' && served[resource.plural]?.has(subresource) === true,
    async respond(call, outgoing, signal) {
      rejectDryRun(call);
      if (call.subresource === 'log') return await answerLog(call, outgoing, deps, signal);
      if (call.subresource === 'proxy')
        return await audited(call, undefined, deps, () => answerProxy(call, outgoing, deps, signal));
      const target = streamTarget(call, deps);
      // The target is validated first, so that a client that requests no upgrade also gets the
      // errors about the target.
      await audited(call, target, deps, async () => {
        throw badRequest('Upgrade request required');
      });
    },
    async upgrade(call, socket, head, signal) {
      rejectDryRun(call);
      const upgrade = { request: call.incoming, socket, head };
      if (call.subresource === 'log') return await upgradeLog(call, upgrade, deps, signal);
      if (call.subresource === 'proxy')
        return await audited(call, undefined, deps, () => upgradeProxy(call, upgrade, deps, signal));
      const target = streamTarget(call, deps);
      await audited(call, target, deps, () => forwardUpgrade(target, upgrade, deps, signal));
    },
  };
}

function rejectDryRun({ query, subresource }: StreamCall): void {
  if ((query.get('dryRun') ?? '') !== '') throw badRequest(`dryRun is not supported for ${subresource}`);
}

/** Logs one audit line per request. */
async function audited(
  call: StreamCall,
  target: StreamTarget | undefined,
  { clock, logger }: StreamsDeps,
  work: () => Promise<number>,
): Promise<void> {
  const beganMs = clock.monotonicMs();
  const { subresource, query, namespace, name, user, incoming } = call;
  const log = (result: string) =>
    logAuditEvent(logger, {
      user: user.name,
      source: incoming.socket.remoteAddress,
      what: `${call.entry.resource.plural}/${subresource}`,
      namespace,
      name,
      podUid: target?.pod.metadata.uid,
      container: target?.container,
      ...(subresource === 'exec' ? commandFacts(query.getAll('command')) : {}),
      path: subresource === 'proxy' ? call.rest : undefined,
      result,
      durationMs: clock.monotonicMs() - beganMs,
    });
  try {
    log(String(await work()));
  } catch (error) {
    log(error instanceof StatusError ? `${error.status.code} ${error.message}` : describeError(error));
    throw error;
  }
}

function commandFacts([program, ...words]: readonly string[]) {
  return { program, argumentCount: words.length };
}
