import type { ContainerConfig, PodSandboxConfig } from '../../src/cri/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { SimulatedImage } from './image-store.ts';
import { type StartProgram, signalName } from './process.ts';
import type { LaunchPlan } from './records.ts';
import { answeringProgram, type ContainerScript, scriptedProgram } from './script.ts';
import { type CommandLine, commandLine } from './shell-script.ts';

/** Selects the behaviour of a container; undefined leaves it to its image or its command line. */
export type ScriptChooser = (
  sandbox: PodSandboxConfig,
  container: ContainerConfig,
) => ContainerScript | undefined;

/**
 * Determines the program of a container from its config and its image; throws if neither defines
 * one.
 */
export function planLaunch(
  id: string,
  sandbox: PodSandboxConfig,
  config: ContainerConfig,
  image: SimulatedImage,
  choose: ScriptChooser,
): LaunchPlan {
  const script = choose(sandbox, config) ?? image.script;
  const words = wordsOf(config, image);
  if (words.length === 0 && script === undefined) {
    throw new GrpcError(
      'UNKNOWN',
      `failed to generate container "${id}" spec: failed to generate spec: no command specified`,
    );
  }
  return {
    words,
    env: environmentOf(sandbox, config, image),
    workingDir: config.workingDir || image.workingDir || '/',
    script,
    usage: script?.usage ?? {},
    user: image.user ?? '',
  };
}

/**
 * The command line of the container: a command in its config replaces the image's entrypoint and
 * the image's arguments.
 */
function wordsOf(config: ContainerConfig, image: SimulatedImage): readonly string[] {
  if (config.command.length > 0) return [...config.command, ...config.args];
  const args = config.args.length > 0 ? config.args : (image.command ?? []);
  return [...(image.entrypoint ?? []), ...args];
}

function environmentOf(
  sandbox: PodSandboxConfig,
  config: ContainerConfig,
  image: SimulatedImage,
): ReadonlyMap<string, string> {
  const env = new Map(Object.entries({ PATH: '/usr/bin:/bin', ...image.env }));
  env.set('HOSTNAME', sandbox.hostname);
  for (const { key, value } of config.envs) env.set(key, Buffer.from(value).toString());
  if (!env.has('HOME')) env.set('HOME', '/root');
  return env;
}

/** The program of the container's first process. */
export function programOf({ script, words }: LaunchPlan): CommandLine {
  if (script === undefined) return commandLine(words);
  if (script.startError !== undefined) return { ok: false, why: script.startError };
  return { ok: true, program: scriptedProgram(script) };
}

/** The program of a command executed in the container. */
export function execProgramOf({ script }: LaunchPlan, command: readonly string[]): CommandLine {
  const response = script?.exec?.(command);
  if (response === undefined) return commandLine(command);
  if (response.startError !== undefined) return { ok: false, why: response.startError };
  return { ok: true, program: answeringProgram(response) satisfies StartProgram };
}

/** The name of the container's stop signal. */
export function stopSignalOf(config: ContainerConfig, image: SimulatedImage): string {
  const expected = config.stopSignal === 'RUNTIME_DEFAULT' ? (image.stopSignal ?? 'TERM') : config.stopSignal;
  return signalName(expected) ?? 'TERM';
}
