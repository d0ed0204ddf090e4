import { describeError, KubelingError, type Logger } from '../../lib/index.ts';
import type { Plugin } from '../../plugins/index.ts';
import { GrpcError, type ServiceAdder } from '../../protocols/grpc/index.ts';
import { isExtendedResource } from '../admission/index.ts';
import type { DeviceManager } from './device-manager.ts';
import { Registration } from './gen/device-plugin.ts';

const pluginVersion = 'v1beta1';

/** Validates a registration; throws PLUGIN_REFUSED with the message for the plugin. */
export async function validateRegistration(request: {
  readonly version: string;
  readonly resourceName: string;
}): Promise<void> {
  const { version, resourceName } = request;
  if (version !== pluginVersion)
    throw rejected(
      `requested API version "${version}" is not supported by kubelet. Supported version is ["${pluginVersion}"]`,
    );
  if (!(await isResourceName(resourceName))) throw rejected(invalidName(resourceName));
}

export async function validateDiscovered({ name, versions }: Plugin): Promise<void> {
  if (!versions.includes(pluginVersion))
    throw rejected(
      `manager version, ${pluginVersion}, is not among plugin supported versions [${versions.join(' ')}]`,
    );
  if (!(await isResourceName(name)))
    throw rejected(`invalid name of device plugin socket: ${invalidName(name)}`);
}

/**
 * The quota of an extended resource is named requests.<name>, which must be a valid qualified name
 * as well.
 */
async function isResourceName(name: string): Promise<boolean> {
  if (!isExtendedResource(name)) return false;
  const { qualifiedName } = await import('../../pods/validation/index.ts');
  return qualifiedName(`requests.${name}`).length === 0;
}

function invalidName(name: string): string {
  return `the ResourceName "${name}" is invalid`;
}

function rejected(message: string): KubelingError {
  return new KubelingError('PLUGIN_REFUSED', message);
}

/** Serves the gRPC service Registration of device plugins. */
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
        logger.error('Rejected device plugin registration', error, { resource: request.resourceName });
        throw new GrpcError('UNKNOWN', describeError(error), error);
      }
    },
  });
}
