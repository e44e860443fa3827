#ifndef PROTOCOL_H
#define PROTOCOL_H
/* Numbers of PROTOCOL.md. */
#define PROTOCOL_VERSION 1u
#define FRAME_MINIMUM 5u
#define FRAME_MAXIMUM 1048576u
#define CHUNK_MAXIMUM 65536u

/* The only request that is recognised before it is a frame's turn. */
#define REQUEST_RESYNC 0x31u

#define USER_ID 1000u
#define USER_GROUP 1000u
#define USER_FOLDER "/workspace"

enum {
    REPLY_OK = 0x80,
    REPLY_ERROR = 0x81,
    EVENT_OUTPUT = 0xC0,
    EVENT_EXIT = 0xC1,
    EVENT_CONNECTION_DATA = 0xC2,
    EVENT_CONNECTION_CLOSED = 0xC3,
    EVENT_READY = 0xC4,
    EVENT_RESYNCED = 0xC5,
    EVENT_CONNECTION_ACCEPTED = 0xC6,
    EVENT_CHANGE = 0xC7,
};
#endif
