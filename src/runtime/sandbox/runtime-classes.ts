import type { CriClient } from '../../cri/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

/** Features of a runtime handler. */
export interface HandlerFeatures {
  readonly userNamespaces: boolean;
  readonly recursiveReadOnly: boolean;
}

/** Maps RuntimeClasses to runtime handlers. */
export interface RuntimeClasses {
  /**
   * Finds a RuntimeClass; returns the reason when it does not exist. Throws when the lookup fails.
   */
  find(name: string, signal: AbortSignal): Promise<FoundClass>;
}

export type FoundClass =
  | { readonly found: true; readonly handler: string }
  | { readonly found: false; readonly because: string };

/**
 * Runtime handler of the pod; empty for the runtime's default handler. Throws SANDBOX_CONFIG for a
 * missing RuntimeClass, because the pod must not run with another handler.
 */
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
 * RuntimeClasses of a node without an API server: each handler of the runtime is a class. When the
 * runtime does not report its handlers, the class name is used as handler and the runtime rejects
 * unknown names.
 */
export function handlersAsClasses(cri: Pick<CriClient, 'status'>): RuntimeClasses {
  return {
    async find(name, signal) {
      const handlers = await handlerNames(cri, signal);
      if (handlers === undefined || handlers.includes(name)) return { found: true, handler: name };
      const has = handlers.length === 0 ? 'none' : handlers.join(', ');
      return {
        found: false,
        because: `runtimeclass.node.k8s.io "${name}" not found: on a standalone node each handler of the runtime is a class, and the runtime has ${has}`,
      };
    },
  };
}

async function handlerNames(
  cri: Pick<CriClient, 'status'>,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const { runtimeHandlers, info } = await cri.status({ verbose: true }, signal);
  const reported = runtimeHandlers.map(({ name }) => name).filter((name) => name !== '');
  return reported.length > 0 ? reported.toSorted() : configuredHandlers(info['config']);
}

/**
 * Reads runtime handlers from the runtime's configuration, because containerd before 2.0 reports
 * them only there; undefined for other runtimes.
 */
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
