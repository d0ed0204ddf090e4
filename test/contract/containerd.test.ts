import { containerdBackend } from './containerd-backend.ts';
import { contractSuite } from './suite.ts';

contractSuite('real containerd', containerdBackend);
