import {
  type Clock,
  describeError,
  HintLatch,
  KeyedBackoff,
  KubelingError,
  type Logger,
  type Random,
  withDeadline,
} from '../lib/index.ts';
import { GrpcError } from '../protocols/grpc/index.ts';
import { type PluginInfo, Registration } from './gen/registration.ts';
import type { PluginChannel, PluginHost, PluginSocket } from './plugin-host.ts';

/** A plugin as it says of itself. */
export interface Plugin {
  readonly name: string;
  /** The socket it serves at. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** Who knows what to do with the plugins of one type. */
export interface PluginHandler {
  /** May be repeated. What it rejects with is told to the plugin, and it is tried again. */
  register(plugin: Plugin, signal: AbortSignal): Promise<void>;
  /** The plugin is gone, or another is in its place. Fine for one that is not known. */
  deregister(plugin: Plugin): void;
}

export interface PluginRegistryDeps {
  /** Where plugins put the sockets they register at. */
  readonly directory: string;
  readonly host: PluginHost;
  /** By the type a plugin says it is of. */
  readonly handlers: ReadonlyMap<string, PluginHandler>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/*
 *   seen ──> asked who it is ──> registered ──> told so ──> known
 *    ^              │ failed          │ failed       │ failed
 *    └── waits <────┴── told why <────┴──────────────┘
 *                          ^ refused later, though known
 *
 * A socket that is gone, or has become another one, is let go first.
 */
interface Seen {
  readonly identity: string;
  /** What it was registered as. */
  known: { readonly handler: PluginHandler; readonly plugin: Plugin } | undefined;
  work: Promise<void> | undefined;
  /** How often nobody listened. */
  deaf: number;
  readonly gone: AbortController;
}

const infoMs = 1_000;
const dialMs = 10_000;
const notifyMs = 5_000;
const registerMs = 130_000;
const lookEveryMs = 10_000;
const retry = { baseMs: 500, maxMs: 122_000 };
/** A plugin that starts leaves its socket of before for a while: whoever waits long for that is late. */
const deafRetryMs = 1_000;
const mostDeaf = 60;

/** Finds plugins by their sockets, asks who they are, and tells them what came of it. */
export class PluginRegistry {
  readonly #deps: PluginRegistryDeps;
  readonly #seen = new Map<string, Seen>();
  readonly #backoff: KeyedBackoff;
  readonly #hints: HintLatch;

  constructor(deps: PluginRegistryDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
    this.#backoff = new KeyedBackoff({ policy: retry, random: deps.random });
  }

  /** The names of all plugins that are registered. */
  get names(): readonly string[] {
    return [...this.#seen.values()].flatMap(({ known }) => (known === undefined ? [] : [known.plugin.name]));
  }

  /** What a plugin was registered for has turned out not to be so: it is let go and told why, and tried again later. */
  refuse({ name, endpoint }: Plugin, why: string): void {
    for (const [path, seen] of this.#seen) {
      const { known } = seen;
      if (known?.plugin.name !== name || known.plugin.endpoint !== endpoint) continue;
      seen.known = undefined;
      known.handler.deregister(known.plugin);
      this.#failed(path, seen, new KubelingError('PLUGIN_REFUSED', why));
      this.#begun(seen, this.#tellRefused(path, why, seen.gone.signal));
    }
  }

  async #tellRefused(path: string, why: string, signal: AbortSignal): Promise<void> {
    const channel = this.#deps.host.open(path);
    await this.#notify(channel, why, signal).finally(() => channel.close());
  }

  async run(signal: AbortSignal): Promise<void> {
    const { host, directory } = this.#deps;
    await host.prepare(directory);
    using _watch = host.watch(directory, () => this.#hints.raise());
    try {
      for (;;) {
        this.#hints.clear();
        await this.#look();
        await this.#hints.wait(this.#nextLookMs(), signal);
      }
    } finally {
      for (const { gone } of this.#seen.values()) gone.abort(signal.reason);
      await Promise.allSettled([...this.#seen.values()].map(({ work }) => work));
      // Begun again, it asks all of them anew.
      for (const path of [...this.#seen.keys()]) this.#letGo(path);
    }
  }

  async #look(): Promise<void> {
    const { host, directory, logger } = this.#deps;
    const sockets = await host.sockets(directory).catch((error: unknown) => {
      logger.error('The sockets of plugins cannot be listed', error, { directory });
      return undefined;
    });
    if (sockets === undefined) return;
    const there = new Map(sockets.map((socket) => [socket.path, socket]));
    for (const [path, { identity }] of [...this.#seen]) {
      if (there.get(path)?.identity !== identity) this.#letGo(path);
    }
    for (const socket of sockets) this.#begin(socket);
  }

  #letGo(path: string): void {
    const seen = this.#seen.get(path);
    this.#seen.delete(path);
    this.#backoff.delete(path);
    seen?.gone.abort(new KubelingError('CANCELLED', 'The socket of the plugin is gone'));
    if (seen?.known === undefined) return;
    const { handler, plugin } = seen.known;
    handler.deregister(plugin);
    this.#deps.logger.info('A plugin is gone', { plugin: plugin.name, socket: path });
  }

  #begin({ path, identity }: PluginSocket): void {
    const seen = this.#seen.get(path) ?? {
      identity,
      known: undefined,
      work: undefined,
      deaf: 0,
      gone: new AbortController(),
    };
    this.#seen.set(path, seen);
    if (seen.known !== undefined || seen.work !== undefined || this.#waitMs(path) > 0) return;
    this.#begun(seen, this.#register(path, seen));
  }

  #begun(seen: Seen, work: Promise<void>): void {
    seen.work = work.finally(() => {
      seen.work = undefined;
      this.#hints.raise();
    });
  }

  #waitMs(path: string): number {
    return this.#backoff.remainingMs(path, { nowMs: this.#deps.clock.monotonicMs() });
  }

  #nextLookMs(): number {
    const waits = [...this.#seen]
      .filter(([, { known, work }]) => known === undefined && work === undefined)
      .map(([path]) => this.#waitMs(path));
    return Math.max(1, Math.min(lookEveryMs, ...waits));
  }

  async #register(path: string, seen: Seen): Promise<void> {
    const { signal } = seen.gone;
    const channel = this.#deps.host.open(path);
    try {
      const found = await this.#ask(channel, path, signal);
      await this.#admit(channel, found, signal);
      if (signal.aborted) found.handler.deregister(found.plugin);
      else this.#registered(path, seen, found);
    } catch (error) {
      if (!signal.aborted) this.#failed(path, seen, error);
    } finally {
      channel.close();
    }
  }

  #registered(path: string, seen: Seen, found: NonNullable<Seen['known']>): void {
    seen.known = found;
    this.#backoff.delete(path);
    this.#deps.logger.info('A plugin is registered', { plugin: found.plugin.name, socket: path });
  }

  async #ask(channel: PluginChannel, path: string, signal: AbortSignal): Promise<NonNullable<Seen['known']>> {
    const { clock, handlers } = this.#deps;
    const deadline = { clock, ms: dialMs + infoMs, what: `ask the plugin at ${path} who it is` };
    const info = await withDeadline(
      deadline,
      (inner) => channel.client(Registration).getInfo({}, { signal: inner, timeoutMs: infoMs }),
      signal,
    );
    const handler = handlers.get(info.type);
    if (handler === undefined) {
      const why = `no handler registered for plugin type: ${info.type} at socket ${path}`;
      await this.#notify(channel, why, signal);
      throw new KubelingError('PLUGIN_REFUSED', why);
    }
    return { handler, plugin: pluginOf(info, path) };
  }

  /** Who cannot be told that it is registered does not know, and is not. */
  async #admit(
    channel: PluginChannel,
    { handler, plugin }: NonNullable<Seen['known']>,
    signal: AbortSignal,
  ): Promise<void> {
    const deadline = { clock: this.#deps.clock, ms: registerMs, what: `register the plugin ${plugin.name}` };
    try {
      await withDeadline(deadline, (inner) => handler.register(plugin, inner), signal);
    } catch (error) {
      signal.throwIfAborted();
      await this.#notify(channel, describeError(error), signal);
      throw error;
    }
    try {
      await this.#tell(channel, { pluginRegistered: true }, signal);
    } catch (error) {
      handler.deregister(plugin);
      throw error;
    }
  }

  /** What it is told in vain is in the log all the same. */
  async #notify(channel: PluginChannel, error: string, signal: AbortSignal): Promise<void> {
    await this.#tell(channel, { pluginRegistered: false, error }, signal).catch(() => {});
  }

  async #tell(
    channel: PluginChannel,
    status: { readonly pluginRegistered: boolean; readonly error?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const deadline = { clock: this.#deps.clock, ms: notifyMs, what: 'tell a plugin what came of it' };
    const call = (inner: AbortSignal) =>
      channel.client(Registration).notifyRegistrationStatus(status, { signal: inner, timeoutMs: notifyMs });
    await withDeadline(deadline, call, signal);
  }

  #failed(path: string, seen: Seen, error: unknown): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const isDeaf = error instanceof GrpcError && error.grpcCode === 'UNAVAILABLE';
    seen.deaf = isDeaf ? seen.deaf + 1 : 0;
    if (isDeaf && seen.deaf <= mostDeaf)
      this.#backoff.restore([[path, { failures: 1, delayMs: deafRetryMs, lastMs: nowMs }]]);
    else this.#backoff.fail(path, { nowMs });
    // A socket that nobody listens at any more is told once: it may lie there for years.
    if (!isDeaf || seen.deaf === 1)
      this.#deps.logger.error('A plugin cannot be registered, it is tried again', error, { socket: path });
  }
}

function pluginOf({ name, endpoint, supportedVersions }: PluginInfo, socket: string): Plugin {
  return { name, endpoint: endpoint === '' ? socket : endpoint, versions: supportedVersions };
}
