import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { GrpcError } from '../protocols/grpc/index.ts';
import type { PluginChannel, PluginSocket } from './plugin-host.ts';
import { type Plugin, PluginRegistry } from './plugin-registry.ts';

const directory = '/root/plugins_registry';
const at = `${directory}/d.sock`;

class World {
  readonly clock = new VirtualClock();
  readonly history: string[] = [];
  readonly end = new AbortController();
  readonly logs = collectLogs(this.clock);
  sockets: PluginSocket[] = [{ path: at, identity: '1' }];
  info = { type: 'CSIPlugin', name: 'd.example', endpoint: '', supportedVersions: ['1.0.0'] };
  asking: Error | undefined;
  telling: Error | undefined;
  registering: Error | undefined;
  #hint = () => {};
  readonly registry = new PluginRegistry({
    directory,
    host: {
      prepare: async () => {},
      sockets: async () => this.sockets,
      watch: (_directory, hint) => {
        this.#hint = hint;
        return { [Symbol.dispose]: () => {} };
      },
      open: () => this.#channel(),
    },
    handlers: new Map([
      [
        'CSIPlugin',
        {
          register: async ({ name, endpoint }: Plugin) => {
            if (this.registering !== undefined) throw this.registering;
            this.history.push(`+${name} ${endpoint}`);
          },
          deregister: ({ name }: Plugin) => void this.history.push(`-${name}`),
        },
      ],
    ]),
    clock: this.clock,
    random: seededRandom(1),
    logger: this.logs.logger,
  });
  readonly running = this.registry.run(this.end.signal).catch(() => {});

  async hint(): Promise<void> {
    this.#hint();
    await this.clock.advance(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end.abort(new Error('over'));
    await this.running;
  }

  #channel(): PluginChannel {
    const calls = {
      getInfo: async () => {
        if (this.asking !== undefined) throw this.asking;
        return this.info;
      },
      notifyRegistrationStatus: async (status: { pluginRegistered: boolean; error?: string }) => {
        if (this.telling !== undefined) throw this.telling;
        this.history.push(status.pluginRegistered ? 'told yes' : `told no: ${status.error}`);
        return {};
      },
    };
    return { client: () => calls as never, close: () => {} };
  }
}

describe('PluginRegistry', () => {
  it('gets the info of a plugin, registers it and notifies it once', async () => {
    await using environment = new World();
    await environment.clock.advance(60_000);
    assert.deepEqual(environment.history, [`+d.example ${at}`, 'told yes']);
    assert.deepEqual(environment.registry.names, ['d.example']);
  });

  it('uses the service endpoint that a plugin returns in its info', async () => {
    await using environment = new World();
    environment.info.endpoint = '/csi/csi.sock';
    await environment.clock.advance(0);
    assert.deepEqual(environment.history[0], '+d.example /csi/csi.sock');
  });

  it('deregisters a plugin whose socket is deleted, and registers it again with a new socket', async () => {
    await using environment = new World();
    await environment.clock.advance(0);
    environment.sockets = [{ path: at, identity: '2' }];
    await environment.hint();
    assert.deepEqual(environment.history.slice(2), ['-d.example', `+d.example ${at}`, 'told yes']);
    environment.sockets = [];
    await environment.hint();
    assert.deepEqual(environment.history.slice(5), ['-d.example']);
    assert.deepEqual(environment.registry.names, []);
  });

  it('deregisters a plugin that its handler rejects after the registration, notifies it, and retries', async () => {
    await using environment = new World();
    await environment.clock.advance(0);
    const plugin = { name: 'd.example', endpoint: at, versions: [] };
    environment.registry.refuse({ ...plugin, endpoint: '/another' }, 'elsewhere');
    environment.registry.refuse(plugin, 'elsewhere');
    environment.registry.refuse(plugin, 'once is enough');
    environment.registering = new Error('elsewhere');
    await environment.clock.advance(400);
    assert.deepEqual(environment.history.slice(2), ['-d.example', 'told no: elsewhere']);
    assert.deepEqual(environment.registry.names, []);
    await environment.clock.advance(200);
    assert.deepEqual(environment.history.slice(4), ['told no: elsewhere']);
    environment.registering = undefined;
    await environment.clock.advance(10_000);
    assert.deepEqual(environment.history.slice(5), [`+d.example ${at}`, 'told yes']);
  });

  it('notifies a rejected plugin of the reason, and retries with back-off', async () => {
    await using environment = new World();
    environment.registering = new Error('the handler rejects this plugin');
    await environment.clock.advance(3_000);
    assert.deepEqual(environment.history, Array(3).fill('told no: the handler rejects this plugin'));
    environment.registering = undefined;
    await environment.clock.advance(3_000);
    assert.deepEqual(environment.history.slice(3), [`+d.example ${at}`, 'told yes']);
  });

  it('rejects a plugin whose type has no handler and names the type', async () => {
    await using environment = new World();
    environment.info.type = 'Toaster';
    await environment.clock.advance(0);
    assert.deepEqual(environment.history, [
      `told no: no handler registered for plugin type: Toaster at socket ${at}`,
    ]);
  });

  it('deregisters a plugin that cannot be notified', async () => {
    await using environment = new World();
    environment.telling = new GrpcError('UNAVAILABLE', 'gone');
    await environment.clock.advance(0);
    assert.deepEqual(environment.history, [`+d.example ${at}`, '-d.example']);
    environment.telling = undefined;
    await environment.clock.advance(1_000);
    assert.deepEqual(environment.history.slice(2), [`+d.example ${at}`, 'told yes']);
  });

  it('retries a socket without a listener every second, and logs that once', async () => {
    await using environment = new World();
    environment.asking = new GrpcError('UNAVAILABLE', 'connection refused');
    await environment.clock.advance(30_000);
    assert.equal(environment.logs.records.toArray().length, 1);
    environment.asking = undefined;
    await environment.clock.advance(1_000);
    assert.deepEqual(environment.history, [`+d.example ${at}`, 'told yes']);
  });

  it('deregisters all plugins when it stops', async () => {
    const environment = new World();
    await environment.clock.advance(0);
    await environment[Symbol.asyncDispose]();
    assert.deepEqual(environment.history.at(-1), '-d.example');
  });
});
