// Runs a fake runtime in a separate process that can be killed: runtime-process.ts SOCKET
import { RuntimeService, type RuntimeServiceMethods } from '../../../src/cri/index.ts';
import { GrpcServer, type ServiceImplementation } from '../../../src/protocols/grpc/index.ts';

const server = new GrpcServer();
const implementation: Partial<ServiceImplementation<RuntimeServiceMethods>> = {
  version: async () => ({ version: '0.1.0', runtimeName: 'process', runtimeVersion: String(process.pid) }),
  status: () => new Promise(() => {}),
  async *getContainerEvents() {
    yield { containerId: 'first' };
    await new Promise(() => {});
  },
};
server.add(RuntimeService, implementation as ServiceImplementation<RuntimeServiceMethods>);
await server.listen(process.argv[2] ?? '');
process.send?.('ready');
process.on('disconnect', () => process.exit());
