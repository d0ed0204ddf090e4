import { describeError, type Logger } from '../../lib/index.ts';
import { GrpcError, type ServiceAdder } from '../../protocols/grpc/index.ts';
import type { DeviceManager } from './device-manager.ts';
import { Registration } from './gen/device-plugin.ts';

/** Where plugins make themselves known. */
export function serveRegistration(
  server: ServiceAdder,
  manager: Pick<DeviceManager, 'registerEndpoint'>,
  logger: Logger,
): void {
  server.add(Registration, {
    register: async (request, { signal }) => {
      try {
        await manager.registerEndpoint(request, signal);
        return {};
      } catch (error) {
        signal.throwIfAborted();
        logger.error('A plugin for devices is refused', error, { resource: request.resourceName });
        throw new GrpcError('UNKNOWN', describeError(error), error);
      }
    },
  });
}
