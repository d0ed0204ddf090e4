import type { CriClient } from '../../cri/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

/** What a handler of the runtime can do for a pod. */
export interface HandlerFeatures {
  readonly userNamespaces: boolean;
  readonly recursiveReadOnly: boolean;
}

/** Which handler of the runtime a class of pods is run by. */
export interface RuntimeClasses {
  /** Answers why not when there is no such class. Throws when it cannot be told. */
  find(name: string, signal: AbortSignal): Promise<FoundClass>;
}

export type FoundClass =
  | { readonly found: true; readonly handler: string }
  | { readonly found: false; readonly because: string };

/** Empty for the runtime's own choice. Throws SANDBOX_CONFIG when there is no such class: the pod must not run in another. */
export async function runtimeHandlerOf(
  { spec }: Pod,
  classes: RuntimeClasses,
  signal: AbortSignal,
): Promise<string> {
  const name = spec.runtimeClassName ?? '';
  if (name === '') return '';
  const answer = await classes.find(name, signal);
  if (answer.found) return answer.handler;
  throw new KubelingError('SANDBOX_CONFIG', `failed to lookup RuntimeClass ${name}: ${answer.because}`);
}

/**
 * The classes of a node that has no API to ask: each handler of the runtime is a class of its name. A runtime that does
 * not tell its handlers is given the name as it is, and refuses what it does not have.
 */
export function handlersAsClasses(cri: Pick<CriClient, 'status'>): RuntimeClasses {
  return {
    async find(name, signal) {
      const handlers = await handlerNames(cri, signal);
      if (handlers === undefined || handlers.includes(name)) return { found: true, handler: name };
      const has = handlers.length === 0 ? 'none' : handlers.join(', ');
      return {
        found: false,
        because: `runtimeclass.node.k8s.io "${name}" not found: on a node of its own each handler of the runtime is a class, and the runtime has ${has}`,
      };
    },
  };
}

async function handlerNames(
  cri: Pick<CriClient, 'status'>,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const { runtimeHandlers, info } = await cri.status({ verbose: true }, signal);
  const told = runtimeHandlers.map(({ name }) => name).filter((name) => name !== '');
  return told.length > 0 ? told.toSorted() : configuredHandlers(info['config']);
}

/** What containerd before 2.0 tells only as part of its configuration; undefined for anything else. */
function configuredHandlers(text: string | undefined): readonly string[] | undefined {
  const runtimes = field(field(parsed(text), 'containerd'), 'runtimes');
  return isObject(runtimes) ? Object.keys(runtimes).toSorted() : undefined;
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return undefined;
  }
}

function field(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
