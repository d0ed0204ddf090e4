import { inProcessBackend, socketBackend } from './simulator-backend.ts';
import { contractSuite } from './suite.ts';

for (const flavour of ['containerd-1.6', 'containerd-2'] as const) {
  contractSuite(`the simulator in process (${flavour})`, () => inProcessBackend({ flavour }));
  contractSuite(`the simulator over its socket (${flavour})`, () => socketBackend({ flavour }));
}
