import { KubelingError, type SendHttp } from '../lib/index.ts';
import { askGrpc, type GrpcProbeDeps } from './grpc-probe.ts';
import { askHttp } from './http-probe.ts';
import type { ExecAction, ProbeAnswer, ProbeQuestion, Prober } from './question.ts';
import { askTcp } from './tcp-probe.ts';

export interface NetworkProberDeps extends GrpcProbeDeps {
  readonly dialHttp: SendHttp;
}

/** Asks over the machine's network. Commands in containers are the runtime's, not this one's. */
export function networkProber(deps: NetworkProberDeps): Prober {
  return {
    async ask(question, signal) {
      const { action } = question;
      signal.throwIfAborted();
      switch (action.kind) {
        case 'http':
          return await askHttp({ ...question, action }, deps, signal);
        case 'tcp':
          return await askTcp({ ...question, action }, deps.clock, signal);
        case 'grpc':
          return await askGrpc({ ...question, action }, deps, signal);
        case 'exec':
          throw new KubelingError('PROBE_UNASKABLE', 'a command cannot be asked over the network');
      }
    },
  };
}

/** The same prober with a way to run commands. */
export function withCommands(
  network: Prober,
  commands: { ask(question: ProbeQuestion<ExecAction>, signal: AbortSignal): Promise<ProbeAnswer> },
): Prober {
  return {
    ask(question, signal) {
      const { action } = question;
      return action.kind === 'exec'
        ? commands.ask({ ...question, action }, signal)
        : network.ask(question, signal);
    },
  };
}
